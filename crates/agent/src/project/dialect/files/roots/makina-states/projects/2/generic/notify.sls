{% set cfg = opts['ms_project'] %}
{{ cfg.name }}-notify:
  cmd.run:
    - name: echo "{{ cfg.name }} {{ 'was rolled back' if cfg.rollback else 'is deployed' }}"
