//! What is in a backup: who looks at it and who fetches it, and that nothing leads out of it.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use corpus_api::Problem;
use corpus_api::backup_files::{BackupFetch, BackupFiles, FetchBackupFile, ListBackupFiles};
use corpus_api::backups::{ListBackups, ListProjectBackups, TakeBackup};
use corpus_api::{Principal, words::Limit};
use corpus_domain::{BackupId, Environment, FileKind, FilePath, GuestId, ProjectId, ProjectRole};
use sqlx::PgPool;
use tempfile::TempDir;

use super::world::{World, at_field, conflict, forbidden, hidden, refusal};

/// A guest's files as an attacker may leave them.
fn files(at: &Path) {
    let write = |name: &[u8], content: &[u8]| {
        let path = at.join(OsStr::from_bytes(name));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    write(b"etc/hosts", b"127.0.0.1 localhost\n");
    write(b"etc/apt/sources.list", b"deb x\n");
    write(b"etc/b", b"");
    write(b"odd/two\nlines", b"1");
    write(b"odd/\xff\xfe", b"22");
    write(b"odd/\x1b[31mred", b"3");
    write("odd/\u{202e}gpj".as_bytes(), b"4");
    write(b"odd/<b>&\"", b"5");
    write(b"odd/end ", b"6");
    write(b"odd/fold\ner/in", b"7");
    std::fs::set_permissions(at.join("etc/hosts"), std::fs::Permissions::from_mode(0o4640)).unwrap();
    symlink("/etc", at.join("etc-link")).unwrap();
    symlink("../../../../../../etc/passwd", at.join("etc/out")).unwrap();
    std::fs::create_dir(at.join("empty")).unwrap();
    for number in 0..7 {
        write(format!("many/{number}").as_bytes(), b"x");
    }
    std::fs::create_dir(at.join("many/z")).unwrap();
}

/// A project with a guest of dev and one of prod, each with a backup that is really there.
struct Shop {
    world: World,
    mia: Principal,
    backup: BackupId,
    of_prod: BackupId,
    guest: GuestId,
    _folder: TempDir,
}

impl Shop {
    async fn new(db: PgPool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let world = World::with_backups(db, folder.path().join("backups")).await;
        let mut mia = world.member("mia", &[]).await;
        let shop = world.project(&mut mia, "shop").await;
        let guest = world.guest(shop, Environment::Dev).await;
        let prod = world.guest(shop, Environment::Prod).await;
        let from = folder.path().join("guest");
        files(&from);
        let backup = save(&world, &mia, (shop, guest), from.clone()).await;
        let of_prod = save(&world, &mia, (shop, prod), from).await;
        Self { world, mia, backup, of_prod, guest, _folder: folder }
    }

    async fn seen(&self, path: &str) -> BackupFiles {
        self.world.ask(&self.mia, list(self.backup, path)).await.unwrap()
    }

    /// What comes, and its name.
    async fn fetched(&self, who: &Principal, asked: FetchBackupFile) -> Result<(BackupFetch, Vec<u8>), Problem> {
        let fetch = self.world.ask(who, asked).await?;
        let mut content = self.world.controller.backup_content(who, &fetch).await?;
        let mut bytes = Vec::new();
        while let Some(piece) = content.next().await {
            bytes.extend_from_slice(&piece.unwrap());
        }
        Ok((fetch, bytes))
    }

    async fn audited(&self) -> i64 {
        self.world.count("select count(*) from audit where action = 'backup.fetch'").await
    }
}

fn list(backup: BackupId, path: &str) -> ListBackupFiles {
    let path = Some(path.parse().unwrap());
    ListBackupFiles { project: "shop".parse().unwrap(), backup, path, cursor: None, limit: None }
}

fn fetch(backup: BackupId, path: &str) -> FetchBackupFile {
    FetchBackupFile { project: "shop".parse().unwrap(), backup, path: path.parse().unwrap() }
}

/// Takes a backup as a job would: what is in a folder.
async fn save(world: &World, who: &Principal, (project, guest): (ProjectId, GuestId), from: PathBuf) -> BackupId {
    let backup = world.ask(who, TakeBackup { guest, comment: None }).await.unwrap().backup;
    let repository = world.controller.services.backup_repository(project).await.unwrap();
    let saved = tokio::task::spawn_blocking(move || repository.save(&from, "guest", "node")).await.unwrap().unwrap();
    sqlx::query(
        "update guest_backups set state = 'ready', taken_at = now(), snapshot = $2, bytes = 1, files = 1, added_bytes = 1,
             took_ms = 1 where id = $1",
    )
    .bind(backup.0)
    .bind(saved.snapshot.id)
    .execute(&world.db)
    .await
    .unwrap();
    backup
}

#[sqlx::test(migrations = "../../migrations")]
async fn who_may_enter_a_guest_reads_what_was_in_it_and_nobody_else(db: PgPool) {
    let shop = Shop::new(db).await;
    let world = &shop.world;
    let dev = world.member("dev", &[("shop", ProjectRole::Developer)]).await;
    let vic = world.member("vic", &[("shop", ProjectRole::Viewer)]).await;
    let mut eve = world.member("eve", &[]).await;
    world.project(&mut eve, "other").await;
    let ops = world.ops().await;
    let (dev_files, prod_files) = (list(shop.backup, "/etc"), list(shop.of_prod, "/etc"));
    let (dev_file, prod_file) = (fetch(shop.backup, "/etc/hosts"), fetch(shop.of_prod, "/etc/hosts"));

    for who in [&shop.mia, &dev, &ops] {
        world.ask(who, dev_files.clone()).await.unwrap();
        assert_eq!(shop.fetched(who, dev_file.clone()).await.unwrap().1, b"127.0.0.1 localhost\n");
    }
    assert_eq!(shop.audited().await, 3);
    for who in [&shop.mia, &ops] {
        world.ask(who, prod_files.clone()).await.unwrap();
        shop.fetched(who, prod_file.clone()).await.unwrap();
    }
    // Seen, and not for them: viewers, and developers of prod.
    forbidden(world.ask(&vic, dev_files.clone()).await);
    forbidden(world.ask(&vic, dev_file.clone()).await);
    forbidden(world.ask(&dev, prod_files.clone()).await);
    let why = refusal(world.ask(&dev, prod_file.clone()).await);
    assert!(why.status == 403 && why.text().contains("mia has that role"), "{why:?}");
    // Not to be seen.
    hidden(world.ask(&eve, dev_files.clone()).await);
    hidden(world.ask(&eve, dev_file.clone()).await);
    // By way of a project of one's own, and of what is none.
    let other = "other".parse::<corpus_domain::ProjectName>().unwrap();
    hidden(world.ask(&eve, ListBackupFiles { project: other.clone(), ..dev_files.clone() }).await);
    hidden(world.ask(&eve, FetchBackupFile { project: other, ..dev_file.clone() }).await);
    hidden(world.ask(&shop.mia, list(uuid::Uuid::now_v7().into(), "/")).await);
    assert_eq!(shop.audited().await, 5);

    // What was begun goes on only as long as they may.
    let begun = world.ask(&shop.mia, prod_file.clone()).await.unwrap();
    forbidden(world.controller.may_fetch(&dev, &begun).await);
    forbidden(world.controller.backup_content(&dev, &begun).await);
    hidden(world.controller.backup_content(&eve, &begun).await);
    world.set_prod_entry(&shop.mia, "shop", true).await.unwrap();
    world.controller.may_fetch(&dev, &begun).await.unwrap();
    world.ask(&dev, prod_files.clone()).await.unwrap();
    shop.fetched(&dev, prod_file.clone()).await.unwrap();
    forbidden(world.ask(&vic, prod_files.clone()).await);

    // They are offered what they may, also of guests that are gone.
    world.set_prod_entry(&shop.mia, "shop", false).await.unwrap();
    let project = "shop".parse::<corpus_domain::ProjectName>().unwrap();
    let offered = async |who| {
        let asked = ListProjectBackups { project: project.clone(), gone: None, cursor: None, limit: None };
        let mut items = world.ask(who, asked).await.unwrap().items;
        items.sort_by_key(|one| one.environment == Environment::Prod);
        items.iter().map(|one| one.may_read).collect::<Vec<_>>()
    };
    assert!(world.ask(&dev, ListBackups { guest: shop.guest }).await.unwrap().may_read);
    assert!(!world.ask(&vic, ListBackups { guest: shop.guest }).await.unwrap().may_read);
    world.run("delete from jobs").await;
    world.run("delete from guests").await;
    for (who, expected) in [(&shop.mia, [true, true]), (&dev, [true, false]), (&vic, [false, false])] {
        assert_eq!(offered(who).await, expected, "{}", who.login);
    }
    world.ask(&dev, dev_files).await.unwrap();
    forbidden(world.ask(&dev, prod_files).await);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_file_comes_as_it_is_and_a_folder_as_an_archive(db: PgPool) {
    let shop = Shop::new(db).await;
    let (told, bytes) = shop.fetched(&shop.mia, fetch(shop.backup, "/etc/hosts")).await.unwrap();
    assert_eq!((told.name.as_str(), told.bytes.map(|size| size.0)), ("hosts", Some(20)));
    assert_eq!(bytes, b"127.0.0.1 localhost\n");
    let (told, bytes) = shop.fetched(&shop.mia, fetch(shop.backup, "/etc/b")).await.unwrap();
    assert_eq!((told.bytes.map(|size| size.0), bytes.len()), (Some(0), 0));

    let (told, bytes) = shop.fetched(&shop.mia, fetch(shop.backup, "/etc")).await.unwrap();
    assert_eq!((told.name.as_str(), told.bytes), ("etc.tar", None));
    let mut archive = tar::Archive::new(bytes.as_slice());
    let mut found = Vec::new();
    for one in archive.entries().unwrap() {
        let mut one = one.unwrap();
        let mut content = String::new();
        one.read_to_string(&mut content).unwrap();
        let link = one.link_name().unwrap().map(|to| to.display().to_string());
        found.push((one.path().unwrap().display().to_string(), one.header().mode().unwrap(), link, content));
    }
    let names: Vec<_> = found.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["etc/", "etc/apt/", "etc/apt/sources.list", "etc/b", "etc/hosts", "etc/out"]);
    assert_eq!((found[4].1, found[4].3.as_str()), (0o4640, "127.0.0.1 localhost\n"));
    // A link is in it as what it is: what it leads to on this machine is not.
    assert_eq!((found[5].2.as_deref(), found[5].3.as_str()), (Some("../../../../../../etc/passwd"), ""));

    // The whole is called as its guest was, and odd names come with it.
    let (told, bytes) = shop.fetched(&shop.mia, fetch(shop.backup, "/")).await.unwrap();
    assert_eq!(told.name, "guest0.example.org.tar");
    let mut archive = tar::Archive::new(bytes.as_slice());
    let names: Vec<Vec<u8>> = archive.entries().unwrap().map(|one| one.unwrap().path_bytes().into_owned()).collect();
    for name in
        [b"guest0.example.org/".as_slice(), b"guest0.example.org/odd/two\nlines", b"guest0.example.org/odd/\xff\xfe"]
    {
        assert!(names.iter().any(|one| one == name), "{}", String::from_utf8_lossy(name));
    }
    let row: (String, serde_json::Value) =
        sqlx::query_as("select subject, detail from audit where action = 'backup.fetch' order by at limit 1")
            .fetch_one(&shop.world.db)
            .await
            .unwrap();
    assert_eq!(row.0, "guest0.example.org");
    assert_eq!((&row.1["path"], &row.1["environment"]), (&"/etc/hosts".into(), &"dev".into()));
    assert_eq!(shop.audited().await, 4);
}

#[sqlx::test(migrations = "../../migrations")]
async fn nothing_leads_out_of_a_backup_or_to_what_is_not_there(db: PgPool) {
    let shop = Shop::new(db).await;
    let (world, mia) = (&shop.world, &shop.mia);
    for wrong in ["/..", "/etc/..", "/etc/../etc/hosts", "/./etc", "etc", "", "/etc\n"] {
        assert!(wrong.parse::<FilePath>().is_err(), "{wrong:?}");
    }
    for path in ["/nothing", "/etc/nothing", "/etc/hosts/x", "/etc-link/hosts", "/proc/self", "/etc/out/x"] {
        hidden(world.ask(mia, list(shop.backup, path)).await);
        hidden(world.ask(mia, fetch(shop.backup, path)).await);
    }
    for link in ["/etc-link", "/etc/out"] {
        at_field(world.ask(mia, list(shop.backup, link)).await, "path", "is no folder");
        at_field(world.ask(mia, fetch(shop.backup, link)).await, "path", "is no folder and no regular file");
    }
    at_field(world.ask(mia, list(shop.backup, "/etc/hosts")).await, "path", "/etc/hosts is no folder");
    // What is not fetched is no row.
    assert_eq!(shop.audited().await, 0);
    // One that is being taken or deleted is not read.
    world.run("update guest_backups set state = 'removing'").await;
    conflict(world.ask(mia, list(shop.backup, "/etc")).await, "it is removing");
    conflict(world.ask(mia, fetch(shop.backup, "/etc/hosts")).await, "it is removing");
    assert_eq!(shop.audited().await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_folder_is_listed_a_page_at_a_time_and_odd_names_are_shown_and_not_fetched(db: PgPool) {
    let shop = Shop::new(db).await;
    let root = shop.seen("/").await;
    assert_eq!(root.path.as_str(), "/");
    assert_eq!((root.name.as_str(), root.environment), ("guest0.example.org", Environment::Dev));
    let of = |files: &BackupFiles| files.items.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
    assert_eq!(of(&root), ["empty", "etc", "many", "odd", "etc-link"], "folders first");
    let link = &root.items[4];
    assert_eq!(
        (link.kind, link.target.as_deref(), &link.path, link.bytes),
        (FileKind::Link, Some("/etc"), &None, None)
    );
    let etc = shop.seen("/etc/").await;
    let hosts = etc.items.iter().find(|one| one.name == "hosts").unwrap();
    assert_eq!((hosts.kind, hosts.bytes.map(|size| size.0), hosts.mode.as_str()), (FileKind::File, Some(20), "4640"));
    assert_eq!(hosts.path.as_ref().map(FilePath::as_str), Some("/etc/hosts"));
    assert!((chrono::Utc::now() - hosts.modified_at).num_hours().abs() < 1, "{}", hosts.modified_at);
    assert_eq!(shop.seen("/empty").await.items, []);
    let unsaid = ListBackupFiles { path: None, ..list(shop.backup, "/") };
    assert_eq!(shop.world.ask(&shop.mia, unsaid).await.unwrap(), root);

    let odd = shop.seen("/odd").await;
    let shown = |name: &str| odd.items.iter().find(|one| one.name == name).unwrap_or_else(|| panic!("{name}: {odd:?}"));
    for name in ["two lines", "\u{fffd}\u{fffd}", "red", "\u{fffd}gpj", "end ", "fold er"] {
        assert_eq!(shown(name).path, None, "{name}");
    }
    let named = shown("<b>&\"").path.clone().unwrap();
    assert_eq!(shop.fetched(&shop.mia, fetch(shop.backup, named.as_str())).await.unwrap().1, b"5");
    assert_eq!(odd.items.len(), 7);

    // Each file is on one page, in one order.
    let mut asked = ListBackupFiles { limit: Some(Limit::try_from(3).unwrap()), ..list(shop.backup, "/many") };
    let mut pages = Vec::new();
    loop {
        let page = shop.world.ask(&shop.mia, asked.clone()).await.unwrap();
        pages.push(of(&page).join(" "));
        asked.cursor = page.next;
        if asked.cursor.is_none() {
            break;
        }
    }
    assert_eq!(pages, ["z 0 1", "2 3 4", "5 6"]);
    // A page that ends with the folder has none after it.
    let asked = ListBackupFiles { limit: Some(Limit::try_from(8).unwrap()), cursor: None, ..asked };
    assert_eq!(shop.world.ask(&shop.mia, asked.clone()).await.unwrap().next, None);
    let foreign = corpus_api::Cursor::after("guests by name", &1);
    at_field(
        shop.world.ask(&shop.mia, ListBackupFiles { cursor: Some(foreign), ..asked }).await,
        "cursor",
        "another list",
    );
}
