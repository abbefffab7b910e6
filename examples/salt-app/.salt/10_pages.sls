pages:
  file.directory:
    - name: {{ cfg.project_root }}/pages

index:
  file.managed:
    - name: {{ cfg.project_root }}/pages/index.html
    - source: salt://files/index.html
    - template: jinja
    - require:
      - file: pages
