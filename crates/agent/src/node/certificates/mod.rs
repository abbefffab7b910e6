//! The certificates of a node's names: their files, and the running proxy that serves them.
//!
//! Private keys are in one folder of the configuration, `certificates/ID.pem`, which root alone can read. They come there
//! by a request of their own ([`put`]); a plan, what is remembered of it, and the log hold their digests only. A file that
//! haproxy can't load takes no other's place, since one such file would keep the whole proxy from starting. Which files are
//! served is in a list beside the folder ([`list`]), rendered from the plan; what changes in it is changed in the running
//! proxy ([`running`]).

pub mod list;
pub(super) mod pem;
pub mod running;

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use corpus_domain::{CertificateId, CertifiedName};
use corpus_protocol::{CERTIFICATES_AT_ONCE, CertificateFile, MAX_CERTIFICATES, NodePlan, ServedCertificate};

use self::list::{Entry, file_name};
use super::{apply, certificate};
use crate::digest::sha256;
use crate::failure::{At, Failure};
use crate::files;
use crate::host::Host;
use crate::runner::Argv;
use crate::task::Task;

/// How long a file waits for a plan that names it: another plan may come before.
const GRACE: Duration = Duration::from_mins(10);
/// Beside a file while it is not yet known to be good.
const NEW: &str = ".new";

fn folder(host: &Host) -> PathBuf {
    host.configuration().join("certificates")
}

fn path(host: &Host, id: CertificateId) -> PathBuf {
    folder(host).join(file_name(id))
}

/// What the proxy reads.
pub fn list_path(host: &Host) -> PathBuf {
    host.configuration().join("certificates.list")
}

fn digest(host: &Host, id: CertificateId) -> Option<String> {
    fs::read(path(host, id)).ok().map(|bytes| sha256(&bytes))
}

/// The same of a file that the proxy can be given; with a damaged one it would serve nobody.
fn digest_of_whole(host: &Host, id: CertificateId) -> Option<String> {
    let text = fs::read_to_string(path(host, id)).ok()?;
    pem::require(&text).is_ok().then(|| sha256(text.as_bytes()))
}

/// What the list says when these files are served.
pub fn list(host: &Host, plan: &NodePlan) -> String {
    list::text(&certificate(host), &list::entries(plan, &folder(host), |id| digest_of_whole(host, id)))
}

/// The file of the certificate by which other nodes know this one, once it is there.
pub fn of_links(host: &Host, plan: &NodePlan) -> Option<PathBuf> {
    let wanted = &plan.links.as_ref()?.certificate;
    (digest_of_whole(host, wanted.id)? == wanted.digest).then(|| path(host, wanted.id))
}

/// Those that have no file, or another one.
pub fn missing(host: &Host, certificates: &[ServedCertificate]) -> Result<Vec<CertificateId>, Failure> {
    if certificates.len() > MAX_CERTIFICATES {
        return Err(Failure::Invalid(format!("{} certificates are too many for a node", certificates.len())));
    }
    let missing = certificates.iter().filter(|one| digest(host, one.id).as_ref() != Some(&one.digest));
    Ok(missing.map(|one| one.id).collect())
}

/// The files are there, but for those that haproxy can't load. A request of no job does nothing on a node that was given
/// back: no key is left on it.
pub fn put(task: &Task<'_>, certificates: &[CertificateFile], of_job: bool) -> Result<bool, Failure> {
    require_files(certificates)?;
    if !of_job && apply::applied(task.host)?.is_none() {
        return Ok(false);
    }
    let is_new = |one: &&CertificateFile| digest(task.host, one.id) != Some(sha256(one.pem.0.as_bytes()));
    let new: Vec<&CertificateFile> = certificates.iter().filter(is_new).collect();
    if new.is_empty() {
        return Ok(false);
    }
    let folder = folder(task.host);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).at("make", &folder)?;
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).at("close", &folder)?;
    let put = put_new(task, &new);
    for one in &new {
        files::remove(&beside(&path(task.host, one.id)))?;
    }
    put
}

fn require_files(certificates: &[CertificateFile]) -> Result<(), Failure> {
    if certificates.len() > CERTIFICATES_AT_ONCE {
        let count = certificates.len();
        return Err(Failure::Invalid(format!("{count} certificates at once are more than {CERTIFICATES_AT_ONCE}")));
    }
    let mut ids = BTreeSet::new();
    for CertificateFile { id, pem } in certificates {
        pem::require(&pem.0).map_err(|why| Failure::Invalid(format!("certificate {id} is none: {why}")))?;
        if !ids.insert(*id) {
            return Err(Failure::Invalid(format!("certificate {id} comes twice")));
        }
    }
    Ok(())
}

fn put_new(task: &Task<'_>, new: &[&CertificateFile]) -> Result<bool, Failure> {
    for one in new {
        write_beside(&path(task.host, one.id), &one.pem.0)?;
    }
    let together: Vec<CertificateId> = new.iter().map(|one| one.id).collect();
    let mut good = 0;
    for id in loadable(task, &together)? {
        let path = path(task.host, id);
        fs::rename(beside(&path), &path).at("write", &path)?;
        good += 1;
    }
    Ok(good > 0)
}

/// Those that haproxy can load; it is asked about each when it does not like all of them together.
fn loadable(task: &Task<'_>, ids: &[CertificateId]) -> Result<Vec<CertificateId>, Failure> {
    if loads(task, ids)? {
        return Ok(ids.to_vec());
    }
    let mut good = Vec::new();
    for id in ids {
        if ids.len() > 1 && loads(task, &[*id])? {
            good.push(*id);
        } else {
            task.note(format!("the proxy can't load certificate {id}; what was there of it stays"));
        }
    }
    Ok(good)
}

fn loads(task: &Task<'_>, ids: &[CertificateId]) -> Result<bool, Failure> {
    let folder = folder(task.host);
    let (list, configuration) = (folder.join(".check.list"), folder.join(".check.cfg"));
    let names = ids.iter().map(|id| format!("{}\n", beside(&path(task.host, *id)).display()));
    let text = format!(
        "defaults\n    mode http\n    timeout client 1s\nfrontend check\n    bind 127.0.0.1:443 {}\n",
        super::proxy::tls(&list)
    );
    files::write(&list, &names.collect::<String>(), 0o600)?;
    files::write(&configuration, &text, 0o600)?;
    let checked = Argv::new("haproxy").args(["-c", "-q", "-f"]).arg(&configuration).run(task);
    files::remove(&list)?;
    files::remove(&configuration)?;
    match checked {
        Ok(_) => Ok(true),
        Err(Failure::Command { .. }) => Ok(false),
        Err(failure) => Err(failure),
    }
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(NEW);
    path.with_file_name(name)
}

/// On the disk, not only on its way there: the proxy would not start with half of a file.
fn write_beside(path: &Path, text: &str) -> Result<(), Failure> {
    let beside = beside(path);
    files::remove(&beside)?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside);
    file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all())).at("write", &beside)
}

/// The files that no certificate of this plan is in: those of the plan before it, and what nobody asked for in a while.
fn stray(host: &Host, plan: &NodePlan, before: Option<&NodePlan>) -> Result<Vec<PathBuf>, Failure> {
    let folder = folder(host);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).at("read", &folder),
    };
    let paths =
        |plan: &NodePlan| -> BTreeSet<PathBuf> { plan.all_certificates().map(|one| path(host, one.id)).collect() };
    let (planned, before) = (paths(plan), before.map(paths).unwrap_or_default());
    let mut stray = Vec::new();
    for entry in entries {
        let path = entry.at("read", &folder)?.path();
        if !planned.contains(&path) && (before.contains(&path) || is_old(&path)) {
            stray.push(path);
        }
    }
    Ok(stray)
}

fn is_old(path: &Path) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|file| file.modified()).ok();
    modified.is_some_and(|time| time.elapsed().map_or(true, |age| age > GRACE))
}

/// Keys that no certificate of the plan needs are gone; tells whether there were any.
pub fn forget(host: &Host, plan: &NodePlan, before: Option<&NodePlan>) -> Result<bool, Failure> {
    let stray = stray(host, plan, before)?;
    stray.iter().try_fold(false, |changed, path| Ok(files::remove(path)? || changed))
}

/// What of the files is not as planned, a sentence each.
pub fn file_differences(host: &Host, plan: &NodePlan) -> Result<Vec<String>, Failure> {
    let named = |one: &ServedCertificate| {
        let first = one.names.iter().take(3).map(CertifiedName::as_str).collect::<Vec<_>>().join(", ");
        format!("the certificate of {first} ({})", one.id)
    };
    let differing = plan.all_certificates().filter_map(|one| match digest(host, one.id) {
        Some(digest) if digest == one.digest => None,
        Some(_) => Some(format!("{} is another than planned", named(one))),
        None => Some(format!("{} is missing", named(one))),
    });
    let mut differences: Vec<String> = differing.collect();
    let stray = stray(host, plan, None)?;
    differences.extend(stray.iter().map(|path| format!("{} belongs to no certificate of this node", path.display())));
    Ok(differences)
}

/// Whether the running proxy serves what the list says.
pub fn is_served(host: &Host, text: &str) -> bool {
    running_difference(host, text).is_ok_and(|difference| difference.is_none())
}

/// What of it the running proxy does not serve as the list says, in a sentence.
pub fn running_difference(host: &Host, text: &str) -> Result<Option<String>, Failure> {
    if !certificate(host).exists() {
        return Ok(None); // Port 443 is closed.
    }
    let (list, entries) = (list_path(host), list::read(text));
    let planned: BTreeSet<String> = entries.iter().map(Entry::line).collect();
    let shown = running::shown(host, &list, &certificate(host))?;
    if let Some(difference) = super::check::lines_differ(&planned, &shown) {
        return Ok(Some(format!("the running proxy does not serve what {} says: it {difference}", list.display())));
    }
    let outdated = running::outdated(host, &entries)?;
    Ok((!outdated.is_empty()).then(|| {
        format!("the running proxy serves other certificates than those in {}", super::check::some(&outdated))
    }))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use corpus_protocol::Secret;

    use super::super::plan::tests::{certificate, plan};
    use super::*;
    use crate::task::test::with_task;

    fn file(number: u128, byte: u8) -> CertificateFile {
        CertificateFile { id: certificate(number, &[]).id, pem: Secret(pem::tests::file(byte)) }
    }

    /// A host, and a plan with two certificates whose files are there.
    fn host() -> (tempfile::TempDir, Host, NodePlan) {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let mut plan = plan();
        plan.certificates = vec![certificate(1, &["a.example.org"]), certificate(2, &["b.example.org"])];
        for one in &mut plan.certificates {
            files::write(&path(&host, one.id), &pem::tests::file(1), 0o600).unwrap();
            one.digest = sha256(pem::tests::file(1).as_bytes());
        }
        (folder, host, plan)
    }

    #[test]
    fn what_is_no_certificate_is_refused_and_what_is_there_is_not_written_again() {
        let (_folder, host, plan) = host();
        let put = |files: &[CertificateFile]| with_task(&host, |task| put(task, files, true));
        assert!(!put(&[file(1, 1), file(2, 1)]).unwrap());
        let bad = CertificateFile { pem: Secret("secret".into()), ..file(3, 1) };
        let error = put(&[bad]).unwrap_err().to_string();
        assert!(error.contains(&file(3, 1).id.to_string()) && !error.contains("secret"), "{error}");
        assert!(put(&[file(3, 1), file(3, 2)]).unwrap_err().to_string().contains("twice"));
        assert!(put(&vec![file(3, 1); CERTIFICATES_AT_ONCE + 1]).unwrap_err().to_string().contains("more than 50"));
        assert_eq!(missing(&host, &plan.certificates).unwrap(), []);
        assert!(missing(&host, &vec![certificate(1, &[]); MAX_CERTIFICATES + 1]).is_err());
    }

    #[test]
    fn a_node_that_was_given_back_gets_no_key() {
        let (_folder, host, _) = host();
        assert!(!with_task(&host, |task| put(task, &[file(3, 1)], false)).unwrap());
        assert!(!path(&host, file(3, 1).id).exists());
    }

    #[test]
    fn files_that_differ_are_named_and_only_those_of_nobody_are_removed() {
        let (_folder, host, plan) = host();
        assert_eq!(file_differences(&host, &plan).unwrap(), Vec::<String>::new());
        let [first, second] = [&plan.certificates[0], &plan.certificates[1]];
        fs::remove_file(path(&host, first.id)).unwrap();
        files::write(&path(&host, second.id), &pem::tests::file(2), 0o600).unwrap();
        // It may just have come for the next plan.
        let (fresh, old) = (path(&host, file(3, 1).id), path(&host, file(4, 1).id));
        for path in [&fresh, &old] {
            files::write(path, "x", 0o600).unwrap();
        }
        fs::File::open(&old).unwrap().set_modified(SystemTime::now() - GRACE - Duration::from_secs(1)).unwrap();
        assert_eq!(missing(&host, &plan.certificates).unwrap(), [first.id, second.id]);
        assert_eq!(
            file_differences(&host, &plan).unwrap(),
            [
                format!("the certificate of a.example.org ({}) is missing", first.id),
                format!("the certificate of b.example.org ({}) is another than planned", second.id),
                format!("{} belongs to no certificate of this node", old.display()),
            ]
        );
        // A file of the plan is served though it is another: a later plan will say so.
        assert!(list(&host, &plan).ends_with("b.example.org\n") && !list(&host, &plan).contains("a.example.org"));
        files::write(&path(&host, second.id), "x", 0o600).unwrap();
        assert!(!list(&host, &plan).contains("b.example.org"), "a damaged file is listed");
        assert!(forget(&host, &plan, None).unwrap() && !forget(&host, &plan, None).unwrap());
        assert!(!old.exists() && fresh.exists());
        let next = NodePlan { certificates: vec![], ..plan.clone() };
        assert!(forget(&host, &next, Some(&plan)).unwrap());
        assert!(!path(&host, second.id).exists() && fresh.exists());
    }
}
