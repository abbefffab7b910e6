"""Where Apache has its files on Debian."""


def settings():
    return {
        "version": "2.4",
        "package": "apache2",
        "service": "apache2",
        "basedir": "/etc/apache2",
        "confdir": "/etc/apache2/conf-available",
        "vhostdir": "/etc/apache2/sites-available",
        "evhostdir": "/etc/apache2/sites-enabled",
        "logdir": "/var/log/apache2",
        "httpd_user": "www-data",
        "httpd_group": "www-data",
        "serveradmin_mail": "webmaster@localhost",
    }
