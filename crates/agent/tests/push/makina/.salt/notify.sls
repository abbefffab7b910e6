{% set cfg = opts['ms_project'] %}
notification:
  cmd.run:
    - name: |
            {% if cfg['rollback'] %}
            echo "Project {{ cfg.name }} was put back: {{ cfg['current_archive_dir'] }}/project.failed"
            {% else %}
            echo "Project {{ cfg.name }} was deployed"
            {% endif %}
