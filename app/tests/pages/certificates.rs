//! What the pages of a name and of certificates say: what is served, what failed and what to do, and who may change it.

use chrono::{TimeDelta, Utc};
use corpus_api::certificates::{CertificatePage, NameCertificate};
use corpus_app::FormState;
use corpus_app::pages::certificates::certificates_view;
use corpus_app::pages::name::{Shown, name_view};
use corpus_app::pages::name_switch::{Ends, switch};
use corpus_domain::{CertificateSource, CertificateState};

use crate::{html, samples};

fn page(failed: bool, change: impl FnOnce(&mut NameCertificate), may_change: bool, form: &FormState) -> String {
    let (name, mut served, authority) = samples::certificate(failed);
    change(&mut served);
    let (aliases, ends, authority) = (samples::aliases(&name), samples::ends(), Some(&authority));
    html(|| {
        name_view(&Shown { name: &name, aliases: &aliases, served: &served, authority, ends: &ends, may_change, form })
    })
}

fn shown(failed: bool, change: impl FnOnce(&mut NameCertificate)) -> String {
    page(failed, change, true, &FormState::default())
}

#[test]
fn a_name_says_what_is_served() {
    let page = shown(false, |_| {});
    assert!(page.contains("https://www.atlas.example.net/"), "{page}");
    assert!(page.contains("corpus.example.org certificate authority"));
    assert!(page.contains("Renew certificate now"));
    assert!(page.contains("href=\"/certificates/root.pem\""), "the root that signed it can be had");
    assert!(page.contains("value=\"86400\" selected"), "{page}");
    assert!(!page.contains("BEGIN"), "no PEM is shown");
}

#[test]
fn what_failed_says_why_and_is_tried_again() {
    let page = shown(true, |_| {});
    assert!(page.contains("open port 80") && page.contains("Try certificate now"), "{page}");
    assert!(page.contains("Served, not renewed"), "the one before is served still");
    let none = shown(true, |one| one.served = None);
    assert!(none.contains("No certificate is served") && none.contains(">Failed<"), "{none}");
    let none = shown(false, |one| {
        one.served = None;
        one.state = CertificateState::None;
    });
    assert!(none.contains("Get certificate now") && none.contains("It holds from when on"), "{none}");
}

#[test]
fn one_that_was_brought_is_renewed_by_nobody() {
    let page = shown(false, |one| {
        let served = one.served.as_mut().unwrap();
        (served.source, served.renew_at) = (CertificateSource::Uploaded, None);
        served.not_after = Utc::now() + TimeDelta::days(3);
    });
    assert!(!page.contains("Renew certificate now") && page.contains("Remove certificate"), "{page}");
    assert!(page.contains("upload the next one before it ends") && page.contains("About to end"), "{page}");
}

#[test]
fn who_may_not_change_it_has_no_form() {
    let page = page(false, |_| {}, false, &FormState::default());
    assert!(!page.contains("<form"), "{page}");
}

#[test]
fn a_name_is_led_to_another_guest_by_who_may() {
    let page = shown(false, |_| {});
    let form = page.split("<form").find(|form| form.contains("/switch\"")).unwrap();
    for guest in samples::ends().guests {
        let is_offered = form.contains(&format!("value=\"{}\"", guest.id));
        assert_eq!(is_offered, guest.id != samples::certificate(false).0.guest, "{}: {form}", guest.name);
    }
    assert!(form.contains("Choose one") && form.contains("it can be undone"), "{form}");
    let (name, ..) = samples::certificate(false);
    let none = |ends: &Ends| switch(&name, ends, &FormState::default()).is_none();
    assert!(none(&Ends::default()), "there is no other guest");
    let cut = Ends { is_cut: true, ..samples::ends() };
    assert!(html(|| switch(&name, &cut, &FormState::default()).unwrap()).contains("the first 50 that run"));
}

#[test]
fn a_refused_upload_keeps_the_chain_and_forgets_the_key() {
    let sent = vec![("chain".to_owned(), "-----BEGIN CERTIFICATE-----\nMIIB".to_owned())];
    let form = FormState::new("upload", sent).error("private_key", "The private key is not the certificate's.");
    let page = page(false, |_| {}, true, &form);
    assert!(page.contains("MIIB") && page.contains("id=\"f-private_key-error\""), "{page}");
    assert!(page.contains("<details open class=\"more body\""), "{page}");
}

#[test]
fn the_list_says_how_near_each_end_is() {
    let page = html(|| certificates_view(&samples::certificates(), &std::collections::BTreeMap::new()));
    for (word, name) in [("About to end", "www."), ("Ends soon", "*.preview."), (">Served<", "shop.")] {
        let row = page.split("<tr").find(|row| row.contains(&format!(">{name}"))).unwrap();
        assert!(row.contains(word), "{row}");
    }
    let none = html(|| certificates_view(&CertificatePage::default(), &std::collections::BTreeMap::new()));
    assert!(none.contains("No certificate is served"), "{none}");
}

#[test]
fn a_name_says_what_points_to_it_and_what_is_an_alias_of_it() {
    let page = shown(false, |_| {});
    assert!(page.contains("Reverse record") && page.contains("10.5.0.12") && page.contains(">Written<"), "{page}");
    assert!(page.contains("Point it to no name") && !page.contains("Point its address here"), "{page}");
    assert!(page.contains("docs.atlas.example.net") && page.contains("Attach alias"), "{page}");
    let failed = shown(true, |_| {});
    assert!(failed.contains("Not written") && failed.contains("Try again"), "{failed}");
    assert!(failed.contains("no reverse zone of ours holds"), "{failed}");
    let viewed = page_for_viewers();
    assert!(viewed.contains("docs.atlas.example.net") && !viewed.contains("Attach alias"), "{viewed}");
    assert!(!viewed.contains("Point it to no name"), "{viewed}");
}

fn page_for_viewers() -> String {
    page(false, |_| {}, false, &FormState::default())
}
