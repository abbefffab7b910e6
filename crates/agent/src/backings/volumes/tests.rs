use super::*;
use crate::task::test::with_task;

/// Volumes that are told and not there.
struct Told(u64);

impl Volumes for Told {
    fn kind(&self) -> Kind {
        Kind::Lvm
    }
    fn obstacle(&self, _: &Host) -> Option<String> {
        Some("there are no disks".into())
    }
    fn ensure(&self, _: &Task<'_>) -> Result<(), Failure> {
        Ok(())
    }
    fn give_back(&self, _: &Task<'_>) -> Result<bool, Failure> {
        Ok(false)
    }
    fn place(&self) -> PathBuf {
        "/dev/told".into()
    }
    fn device(&self, host: &Host, name: &Name) -> PathBuf {
        host.path("/dev").join(name.to_string())
    }
    fn room(&self, _: &Task<'_>) -> Result<Bytes, Failure> {
        Ok(Bytes(950))
    }
    fn found(&self, _: &Task<'_>) -> Result<Found, Failure> {
        let volume = |name: &str, promised| Volume { name: name.into(), size: Bytes(500), promised: Bytes(promised) };
        Ok(Found { room: Bytes(1000), step: Bytes(4), volumes: vec![volume(GUEST, self.0), volume("others", 100)] })
    }
    fn make(&self, _: &Task<'_>, _: &Name, _: Bytes) -> Result<(), Failure> {
        Ok(())
    }
    fn copy(&self, _: &Task<'_>, _: &Name, _: &Name) -> Result<(), Failure> {
        Ok(())
    }
    fn attach(&self, _: &Task<'_>, _: &Name) -> Result<(), Failure> {
        Ok(())
    }
    fn detach(&self, _: &Task<'_>, _: &Name) -> Result<(), Failure> {
        Ok(())
    }
    fn resize(&self, _: &Task<'_>, _: &Name, _: Bytes, _: Bytes) -> Result<(), Failure> {
        Ok(())
    }
    fn remove(&self, _: &Task<'_>, _: &Name) -> Result<(), Failure> {
        Ok(())
    }
}

const GUEST: &str = "guest.0195b7c6f2a17c3e9d58a1b2c3d4e5f6";

#[test]
fn what_was_promised_is_not_free() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::below(folder.path());
    let piece = folder.path().join("piece");
    files::private(&piece).unwrap();
    note(&piece.join(NOTE), &format!("{GUEST}\n")).unwrap();
    with_task(&host, |task| {
        let require = |piece, size| OnVolumes(Told(500)).require_room(task, piece, Bytes(size));
        require(None, 400).unwrap();
        let error = require(None, 401).unwrap_err();
        assert!(matches!(error, Failure::NoSpace { free: Bytes(400), needed: Bytes(401), .. }), "{error}");
        require(Some(&piece), 900).unwrap();
        assert!(require(Some(&piece), 901).is_err());
        let error = OnVolumes(Told(1200)).require_room(task, None, Bytes(1)).unwrap_err();
        assert!(matches!(error, Failure::NoSpace { free: Bytes(0), .. }), "{error}");
    });
    assert_eq!(OnVolumes(Told(0)).promised(&host, folder.path()), 0, "it is not the disk of the guests' folders");
}

#[test]
fn what_guests_may_have_is_told() {
    let volume = |name: &str, promised| Volume { name: name.into(), size: Bytes(promised), promised: Bytes(promised) };
    let [image, copy] = ["image", "copy"].map(|purpose| GUEST.replace("guest", purpose));
    let volumes = vec![volume(GUEST, 300), volume(&copy, 100), volume(&image, 50), volume("others", 7)];
    let found = Found { room: Bytes(1000), step: Bytes(4), volumes };
    assert_eq!((found.for_guests(), found.free()), (Bytes(943), Bytes(543)));
    assert_eq!(Found { room: Bytes(40), ..found }.for_guests(), Bytes(0));
    let folder = tempfile::tempdir().unwrap();
    let told = with_task(&Host::below(folder.path()), |task| OnVolumes(Told(0)).room(task)).unwrap();
    assert_eq!(told, None, "it can't be used");
}

#[test]
fn sizes_are_rounded_up() {
    let found = |step| Found { step: Bytes(step), ..Found::default() };
    let rounded = |step, size| found(step).rounded(Bytes(size)).0;
    assert_eq!((rounded(4, 8), rounded(4, 9), rounded(0, 9)), (8, 12, 9));
}

#[test]
fn a_piece_that_was_only_begun_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let piece = folder.path().join("lvm");
    assert_eq!(read(&piece).unwrap(), None);
    let name = begin(&piece, Use::Guest).unwrap();
    assert_eq!(read(&piece).unwrap(), Some(name));
    fs::write(piece.join(NOTE), "").unwrap();
    assert_eq!(read(&piece).unwrap(), None);
    fs::write(piece.join(NOTE), "../../sda\n").unwrap();
    assert!(read(&piece).is_err());
    let host = Host::below(folder.path());
    fs::write(piece.join(NOTE), GUEST).unwrap();
    with_task(&host, |task| {
        OnVolumes(Told(0)).release(task, folder.path()).unwrap();
        OnVolumes(Told(0)).remove(task, &piece).unwrap();
        assert_eq!(read(&piece).unwrap(), None);
    });
}
