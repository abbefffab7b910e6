links:
  cmd.run:
    - name: "! grep -Fn TODO pages/*.html"
    - cwd: {{ cfg.project_root }}
