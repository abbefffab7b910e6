/*
 * Chromium gives up every request that is under way when an address of this machine comes or goes
 * (net::ERR_NETWORK_CHANGED), as those of labs do all the time: pages of one test would lose their scripts by another's
 * lab. It hears of addresses by netlink, and believes to be online where it has none; so this denies it.
 * Preloaded by browser.mjs into the browser alone.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int socket(int domain, int type, int protocol)
{
    if (domain == AF_NETLINK) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    return (int)syscall(SYS_socket, domain, type, protocol);
}
