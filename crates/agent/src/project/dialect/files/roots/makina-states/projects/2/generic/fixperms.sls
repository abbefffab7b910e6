{% set cfg = opts['ms_project'] %}
{% set user = 'root' if cfg.no_user else cfg.user %}
{% set reset = salt['mc_locations.settings']().resetperms %}
{{ cfg.name }}-restricted-perms:
  cmd.run:
    - names:
      - {{ reset }} -q --no-acls --dmode 0750 --fmode 0640 --user root --group {{ cfg.group }} --paths "{{ cfg.pillar_root }}"
      - {{ reset }} -q --no-acls --dmode 0770 --fmode 0770 --user {{ user }} --group {{ cfg.group }} --paths "{{ cfg.project_root }}" --paths "{{ cfg.data_root }}"
