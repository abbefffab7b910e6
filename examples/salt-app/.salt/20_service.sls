{% set name = cfg.name ~ '-web' %}
unit:
  file.managed:
    - name: /etc/systemd/system/{{ name }}.service
    - contents: |
        [Unit]
        Description=Web site of {{ cfg.name }}

        [Service]
        ExecStart=/usr/bin/python3 -m http.server --directory {{ cfg.project_root }}/pages 80
        User={{ cfg.user }}
        AmbientCapabilities=CAP_NET_BIND_SERVICE
        Restart=always

        [Install]
        WantedBy=multi-user.target

reload:
  cmd.run:
    - name: systemctl daemon-reload
    - onchanges:
      - file: unit

service:
  service.running:
    - name: {{ name }}
    - enable: true
    - require:
      - cmd: reload
    - watch:
      - file: unit
