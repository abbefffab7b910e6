include:
  - 10_pages
  - 20_service
