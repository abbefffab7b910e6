{# Corpus keeps a copy of what is live before it changes anything: there is nothing left to do. #}
{{ opts['ms_project'].name }}-sav-project-dir:
  mc_proxy.hook: []
