"""Frames of a guest's root that would be somebody else. Each carries a word, by which it is found where it arrives.

frames.py send INTERFACE        run in a guest; the neighbour is 10.5.0.11, the gateway 10.5.0.1
frames.py hear INTERFACE        print the words of the frames that come in, for three seconds
"""
import socket
import struct
import sys
import time

OWN, NEIGHBOUR, GATEWAY = "10.5.0.10", "10.5.0.11", "10.5.0.1"
BROADCAST = b"\xff" * 6


def mac(text):
    return bytes(int(part, 16) for part in text.split(":"))


def mac_of(ip):
    return b"\x00\x16\x3e" + socket.inet_aton(ip)[1:]


def ethernet(to, by, kind, payload):
    return to + by + struct.pack("!H", kind) + payload


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def udp(by, to, by_port, to_port, word):
    body = struct.pack("!HHHH", by_port, to_port, 8 + len(word), 0) + word
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 1, 0, 64, 17, 0, socket.inet_aton(by), socket.inet_aton(to))
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + body


def arp(kind, by_mac, by, to_mac, to, word):
    head = struct.pack("!HHBBH", 1, 0x0800, 6, 4, kind)
    return head + by_mac + socket.inet_aton(by) + to_mac + socket.inet_aton(to) + word


def ipv6(by, to, protocol, body):
    return struct.pack("!IHBB", 0x60000000, len(body), protocol, 255) + socket.inet_pton(socket.AF_INET6, by) + socket.inet_pton(socket.AF_INET6, to) + body


def frames():
    own, neighbour, gateway = mac_of(OWN), mac_of(NEIGHBOUR), mac_of(GATEWAY)
    zero = b"\x00" * 6
    word = lambda name: f"corpus:{name};".encode()
    plain = lambda name: udp(OWN, GATEWAY, 5000, 5000, word(name))
    yield "honest", ethernet(gateway, own, 0x0800, plain("honest"))
    yield "honest-arp", ethernet(BROADCAST, own, 0x0806, arp(1, own, OWN, zero, GATEWAY, word("honest-arp")))
    yield "other-mac", ethernet(gateway, mac("00:16:3e:99:99:99"), 0x0800, plain("other-mac"))
    yield "neighbours-mac", ethernet(gateway, neighbour, 0x0800, plain("neighbours-mac"))
    yield "neighbours-ip", ethernet(gateway, own, 0x0800, udp(NEIGHBOUR, GATEWAY, 5000, 5000, word("neighbours-ip")))
    yield "neighbour-whole", ethernet(gateway, neighbour, 0x0800, udp(NEIGHBOUR, GATEWAY, 5000, 5000, word("neighbour-whole")))
    yield "to-neighbour", ethernet(neighbour, own, 0x0800, udp(OWN, NEIGHBOUR, 5000, 5000, word("to-neighbour")))
    yield "to-nobody", ethernet(mac("00:16:3e:99:99:99"), own, 0x0800, udp(OWN, NEIGHBOUR, 5000, 5000, word("to-nobody")))
    for name, ip in (("neighbour", NEIGHBOUR), ("gateway", GATEWAY)):
        yield f"arp-{name}", ethernet(BROADCAST, own, 0x0806, arp(2, own, ip, BROADCAST, ip, word(f"arp-{name}")))
        yield f"asks-as-{name}", ethernet(BROADCAST, own, 0x0806, arp(1, own, ip, zero, GATEWAY, word(f"asks-as-{name}")))
        yield f"tells-{name}", ethernet(neighbour, own, 0x0806, arp(2, own, ip, neighbour, NEIGHBOUR, word(f"tells-{name}")))
    yield "arp-inner-mac", ethernet(BROADCAST, own, 0x0806, arp(2, neighbour, OWN, BROADCAST, OWN, word("arp-inner-mac")))
    yield "offer", ethernet(BROADCAST, own, 0x0800, udp(OWN, "255.255.255.255", 67, 68, word("offer")))
    yield "multicast", ethernet(mac("01:00:5e:00:00:fb"), own, 0x0800, udp(OWN, "224.0.0.251", 5353, 5353, word("multicast")))
    all_nodes = mac("33:33:00:00:00:01")
    for name, kind in (("router", 134), ("neighbour6", 136)):
        body = struct.pack("!BBHBBHII", kind, 0, 0, 64, 0, 1800, 0, 0) + word(name)
        yield name, ethernet(all_nodes, own, 0x86DD, ipv6("fe80::1", "ff02::1", 58, body))
    for name, kind in (("vlan", 0x8100), ("vlan-0", 0x8100), ("service-vlan", 0x88A8)):
        tag = struct.pack("!HH", 0 if name == "vlan-0" else 7, 0x0800)
        yield name, ethernet(gateway, own, kind, tag + plain(name))
    for name, last, kind in (("stp", 0, 38), ("pause", 1, 0x8808), ("eapol", 3, 0x888E), ("lldp", 14, 0x88CC)):
        yield name, ethernet(mac("01:80:c2:00:00:%02x" % last), neighbour, kind, word(name))
    # To a group that the bridge keeps for itself, which passes another hook.
    yield "hidden", ethernet(mac("01:80:c2:00:00:0e"), neighbour, 0x0800, plain("hidden"))
    yield "unknown", ethernet(BROADCAST, own, 0x1234, word("unknown"))


def send(interface):
    line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    line.bind((interface, 0))
    for _, frame in frames():
        for _ in range(3):
            line.send(frame.ljust(60, b"\x00"))
        time.sleep(0.01)
    print(*(name for name, _ in frames()))


def hear(interface):
    line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    line.bind((interface, 0))
    line.settimeout(0.1)
    print("ready", flush=True)
    heard, end = [], time.monotonic() + 3
    while time.monotonic() < end:
        try:
            frame, address = line.recvfrom(2048)
        except socket.timeout:
            continue
        if address[2] != socket.PACKET_OUTGOING and b"corpus:" in frame:
            heard.append(frame.split(b"corpus:")[1].split(b";")[0].decode())
    print(*sorted(set(heard)))


{"send": send, "hear": hear}[sys.argv[1]](sys.argv[2])
