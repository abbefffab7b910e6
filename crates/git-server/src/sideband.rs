//! What git's program on a guest says, without what would act on the pusher's terminal.
//!
//! A client shows what comes on the side bands, and the reason why a branch was refused, as it is;
//! root of the guest writes there what they like: the clipboard, the title, lines over those that
//! were there. So the packets of the protocol (gitprotocol-pack, gitprotocol-common) are followed:
//! the text of the side bands is made plain, everything else that is no pack keeps its length, and
//! a pack goes through as it came. At most one packet is held, 64 KiB.

use corpus_domain::{Plain, plain_bytes};

/// The longest packet that git takes, with its header.
const MAX_PACKET: usize = 65_520;
const HEADER: usize = 4;
const PACK: &[u8] = b"PACK";

/// What came is no packet of git's protocol.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidPacket;

/// Where a packet goes on.
#[derive(Debug)]
enum State {
    /// Its header, and the first byte of what it holds.
    Header,
    /// So many bytes of a pack.
    Through(usize),
    /// So many bytes of what is looked at as a whole.
    Whole(usize),
    /// No packets any more, but a pack to its end.
    Pack,
}

/// Follows what the program says.
#[derive(Debug)]
pub(crate) struct Sideband {
    state: State,
    held: Vec<u8>,
    /// How much of the data on the first band is like a pack; none once it is not.
    pack: Option<usize>,
    second: Plain,
    third: Plain,
}

impl Sideband {
    pub(crate) fn new() -> Self {
        let (second, third) = (Plain::progress(), Plain::progress());
        Self { state: State::Header, held: Vec::new(), pack: Some(0), second, third }
    }

    /// What the client gets of these bytes; what is not whole yet waits.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) -> Result<Vec<u8>, InvalidPacket> {
        let mut out = Vec::with_capacity(bytes.len() + HEADER);
        while !bytes.is_empty() {
            let room = match self.state {
                State::Header if self.held.len() < HEADER => HEADER - self.held.len(),
                State::Header => 1,
                State::Through(left) | State::Whole(left) => left,
                State::Pack => bytes.len(),
            };
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            bytes = later;
            match self.state {
                State::Header => self.header(now, &mut out)?,
                State::Through(left) => {
                    out.extend_from_slice(now);
                    self.state = if now.len() == left { State::Header } else { State::Through(left - now.len()) };
                }
                State::Whole(left) => {
                    self.held.extend_from_slice(now);
                    self.state = State::Whole(left - now.len());
                    if now.len() == left {
                        self.whole(&mut out);
                    }
                }
                State::Pack => out.extend_from_slice(now),
            }
        }
        Ok(out)
    }

    fn header(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), InvalidPacket> {
        self.held.extend_from_slice(bytes);
        if self.held.len() < HEADER {
            return Ok(());
        }
        if self.held == PACK {
            self.state = State::Pack;
            out.append(&mut self.held);
            return Ok(());
        }
        let length = length(&self.held)?;
        let Some(band) = self.held.get(HEADER) else {
            // The end of a part, and a packet without anything in it.
            if length <= HEADER {
                out.append(&mut self.held);
            }
            return Ok(());
        };
        let left = length - HEADER - 1;
        let is_pack = *band == 1 && self.pack == Some(PACK.len());
        if is_pack {
            out.append(&mut self.held);
        }
        self.state = match (is_pack, left) {
            (true, 0) => State::Header,
            (true, _) => State::Through(left),
            (false, _) => State::Whole(left),
        };
        if !is_pack && left == 0 {
            self.whole(out);
        }
        Ok(())
    }

    /// A packet that is looked at is there.
    fn whole(&mut self, out: &mut Vec<u8>) {
        self.state = State::Header;
        let mut packet = std::mem::take(&mut self.held);
        let (band, data) = packet.split_at_mut(HEADER + 1);
        match band.last() {
            Some(1) => self.first_band(data),
            Some(2) => return say(2, &self.second.part(data), data.len(), out),
            Some(3) => return say(3, &self.third.part(data), data.len(), out),
            // The advertisement of branches, and answers without bands.
            _ => plain_bytes(packet.get_mut(HEADER..).unwrap_or_default()),
        }
        out.append(&mut packet);
    }

    /// A pack, or the report of a push. Who expects the one ends at the first bytes of the other.
    fn first_band(&mut self, data: &mut [u8]) {
        if let Some(seen) = self.pack {
            let rest = PACK.get(seen..).unwrap_or_default();
            let length = rest.len().min(data.len());
            self.pack = (rest.get(..length) == data.get(..length)).then_some(seen + length);
        }
        if self.pack != Some(PACK.len()) {
            plain_bytes(data);
        }
    }
}

fn length(header: &[u8]) -> Result<usize, InvalidPacket> {
    let digits = header.get(..HEADER).and_then(|digits| std::str::from_utf8(digits).ok()).ok_or(InvalidPacket)?;
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(InvalidPacket);
    }
    match usize::from_str_radix(digits, 16) {
        Ok(length @ (0..=2 | HEADER..=MAX_PACKET)) => Ok(length),
        _ => Err(InvalidPacket),
    }
}

/// Text on a band, in packets that are no longer than the one that it came in.
fn say(band: u8, text: &str, longest: usize, out: &mut Vec<u8>) {
    let mut parts = text.as_bytes().chunks(longest.max(1)).peekable();
    if parts.peek().is_none() {
        // As when git has nothing to say and shows that it is there.
        out.extend_from_slice(format!("{:04x}", HEADER + 1).as_bytes());
        out.push(band);
    }
    for part in parts {
        out.extend_from_slice(format!("{:04x}", HEADER + 1 + part.len()).as_bytes());
        out.push(band);
        out.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet(data: &[u8]) -> Vec<u8> {
        [format!("{:04x}", data.len() + HEADER).as_bytes(), data].concat()
    }

    fn through(bytes: &[u8]) -> Vec<u8> {
        Sideband::new().take(bytes).unwrap()
    }

    const EVIL: &[u8] = b"\x1b]52;c;cm0gLXJm\x07ok\x1b[2A\xe2\x80\xae\n";

    #[test]
    fn the_side_bands_are_plain_text() {
        for band in [2, 3] {
            let told = packet(&[[band].as_slice(), EVIL].concat());
            assert_eq!(through(&told), packet(&[[band].as_slice(), "ok\u{fffd}\n".as_bytes()].concat()));
            assert_eq!(through(&packet(&[band])), packet(&[band]), "a sign of life");
            let split = [packet(&[band, 0x1b]), packet(&[[band].as_slice(), b"[31mred".as_slice()].concat())].concat();
            assert_eq!(
                through(&split),
                [packet(&[band]), packet(&[[band].as_slice(), b"red".as_slice()].concat())].concat()
            );
        }
        let progress = packet(b"\x02Counting: 50%\rCounting: 100%, done.\n");
        assert_eq!(through(&progress), progress);
        let longer = through(&packet(&[vec![2], vec![0xff; 65_515]].concat()));
        let mut rest = longer.as_slice();
        while !rest.is_empty() {
            let length = length(rest).unwrap();
            assert!(length <= MAX_PACKET);
            rest = &rest[length..];
        }
    }

    #[test]
    fn reasons_and_names_keep_their_length() {
        let report = [packet(b"unpack ok\n"), packet(b"ng refs/heads/main \x1b]0;x\x07\xc2\x9bno\n"), b"0000".to_vec()];
        let told = packet(&[b"\x01".as_slice(), &report.concat()].concat());
        let shown = through(&told);
        assert_eq!(shown.len(), told.len());
        assert!(String::from_utf8_lossy(&shown).contains("ng refs/heads/main _]0;x___no\n"), "{shown:?}");
        let name = packet(b"1234567890123456789012345678901234567890 refs/heads/\x1b[2J\0report-status\n");
        assert!(through(&name).ends_with(b" refs/heads/_[2J\0report-status\n"));
    }

    #[test]
    fn a_pack_goes_through_as_it_is() {
        let bytes: Vec<u8> = (0..=255).cycle().take(9_000).collect();
        let banded = [
            packet(b"NAK\n"),
            packet(b"\x01PA"),
            packet(b"\x01CK\x1b"),
            packet(&[b"\x01".as_slice(), &bytes].concat()),
            b"0000".to_vec(),
        ];
        assert_eq!(through(&banded.concat()), banded.concat());
        let bare = [packet(b"NAK\n"), b"PACK".to_vec(), bytes].concat();
        assert_eq!(through(&bare), bare);
    }

    #[test]
    fn what_is_no_packet_ends_it() {
        for wrong in [b"\x1b]52".as_slice(), b"0003", b"fff1x", b"+00fabc", b"xyzw"] {
            assert_eq!(Sideband::new().take(wrong), Err(InvalidPacket), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn however_it_is_cut_the_client_gets_the_same(
            packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..8),
            cuts in prop::collection::vec(1_usize..9, 200),
        ) {
            let told: Vec<u8> = packets.iter().flat_map(|data| packet(data)).collect();
            let (mut sideband, mut got, mut rest) = (Sideband::new(), Vec::new(), told.as_slice());
            for cut in cuts {
                let (head, tail) = rest.split_at(cut.min(rest.len()));
                got.extend(sideband.take(head).unwrap());
                rest = tail;
            }
            got.extend(sideband.take(rest).unwrap());
            prop_assert!(sideband.held.len() <= MAX_PACKET);
            prop_assert_eq!(got, through(&told));
        }
    }
}
