{% set cfg = opts['ms_project'] %}
{% set locs = salt['mc_locations.settings']() %}
{% set ugs = salt['mc_usergroup.settings']() %}
{{ cfg.name }}-restricted-perms:
  file.managed:
    - name: {{ cfg.project_dir }}/global-reset-perms.sh
    - mode: 750
    - user: {% if not cfg.no_user %}{{ cfg.user }}{% else %}root{% endif %}
    - group: {{ cfg.group }}
    - contents: |
            #!/usr/bin/env bash
            set -e
            "{{ locs.resetperms }}" --no-acls --user root --group "{{ cfg.group }}" \
              --dmode '0750' --fmode '0640' --paths "{{ cfg.pillar_root }}"
            "{{ locs.resetperms }}" -q --dmode '0770' --fmode '0770' \
              --user {{ cfg.user }} --group {{ cfg.group }} \
              --users {{ cfg.user }}:rwx --groups {{ ugs.group }}:r-x \
              --paths "{{ cfg.project_root }}" --paths "{{ cfg.data_root }}/www"
  cmd.run:
    - name: {{ cfg.project_dir }}/global-reset-perms.sh
    - cwd: {{ cfg.project_root }}
    - user: root
    - watch:
      - file: {{ cfg.name }}-restricted-perms
