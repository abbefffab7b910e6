{% set cfg = opts.ms_project %}
{{ cfg.name }}-unit:
  file.managed:
    - name: /etc/systemd/system/{{ cfg.name }}-web.service
    - contents: |
        [Service]
        ExecStart=/usr/bin/python3 -m http.server --directory {{ cfg.data.www }} 80
        User={{ cfg.user }}
        AmbientCapabilities=CAP_NET_BIND_SERVICE

        [Install]
        WantedBy=multi-user.target

{{ cfg.name }}-reload:
  cmd.run:
    - name: systemctl daemon-reload
    - onchanges:
      - file: {{ cfg.name }}-unit

{{ cfg.name }}-web:
  service.running:
    - enable: true
    - require:
      - cmd: {{ cfg.name }}-reload
