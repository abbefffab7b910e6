//! The parts of a name's page about HTTPS: its certificate and what to do when there is none, what is told to who comes by
//! HTTP, a certificate of one's own, and the root to trust.

use chrono::Utc;
use corpus_api::certificates::{
    CertificateAuthority, NameCertificate, Nearness, RemoveCertificate, ServedByNode, SetNameHttps, UploadCertificate,
};
use corpus_api::names::NameLine;
use corpus_domain::{CertificateSource, CertificateState};
use leptos::prelude::*;

use super::name::path;
use crate::components::{
    Fact, Field, Tone, at, check, code, confirm_at, copied, empty, facts, notice, status, stays_at,
};
use crate::form::{FormState, sentence};
use crate::to::to;

/// For how long browsers may be told to remember.
const REMEMBERED: [(&str, &str); 6] = [
    ("", "No"),
    ("300", "For 5 minutes, to try it"),
    ("86400", "For a day"),
    ("15552000", "For 180 days"),
    ("31536000", "For a year"),
    ("63072000", "For two years"),
];

/// What is served, and how the next one stands.
pub fn certificate(served: &NameCertificate) -> AnyView {
    let job = served.job.map(|job| view! { " "<a class="link" href=format!("/jobs/{job}")>"Its job"</a> });
    let failed = served.problem.as_deref().filter(|_| served.state == CertificateState::Failed).map(|problem| {
        let again = served.next_try_at.map(|when| view! { " It is tried again by itself at "{at(when)}"." });
        let more = view! { <span>{sentence(problem)}{again}</span> };
        notice(Tone::Fail, "The last try to get a certificate failed", more.into_any())
    });
    let body = match &served.served {
        Some(one) => facts(rows(one, served.state)),
        None => without(served.state),
    };
    view! { <div class="body">{failed}{state(served)}{job}</div>{body} }.into_any()
}

fn state(served: &NameCertificate) -> AnyView {
    let near = served.served.as_ref().map(|one| Nearness::of(one.not_before, one.not_after, Utc::now()));
    match (served.state, near) {
        (_, Some(Nearness::Over)) => status(Tone::Fail, "Ended"),
        (CertificateState::Wanted, _) => status(Tone::Wait, "Waits to be issued"),
        (CertificateState::Issuing, _) => status(Tone::Busy, "Being issued"),
        (CertificateState::Failed, Some(_)) => status(Tone::Warn, "Served, not renewed"),
        (CertificateState::Failed, None) => status(Tone::Fail, "Failed"),
        (_, Some(near)) => nearness(near),
        (_, None) => status(Tone::Off, "None"),
    }
}

/// How near the end is.
pub fn nearness(near: Nearness) -> AnyView {
    match near {
        Nearness::Far => status(Tone::Ok, "Served"),
        Nearness::Soon => status(Tone::Warn, "Ends soon"),
        Nearness::Close => status(Tone::Fail, "About to end"),
        Nearness::Over => status(Tone::Fail, "Ended"),
    }
}

fn without(state: CertificateState) -> AnyView {
    let next = if state == CertificateState::None {
        "By HTTPS visitors are shown a certificate that no browser takes. Get one, or upload your own."
    } else {
        "Until it is there visitors by HTTPS are shown a certificate that no browser takes."
    };
    empty("No certificate is served", next.into_any())
}

/// Who signed it, in words.
pub const fn source_words(source: CertificateSource) -> &'static str {
    match source {
        CertificateSource::Internal => "the authority of Corpus",
        CertificateSource::Acme => "a directory, by ACME",
        CertificateSource::Uploaded => "uploaded",
    }
}

fn rows(one: &ServedByNode, state: CertificateState) -> Vec<Fact> {
    let names = one.names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let next = match one.renew_at {
        Some(when) if state == CertificateState::Served => view! { "by itself from "{at(when)}" on" }.into_any(),
        Some(_) => "being got".into_any(),
        None => "by nobody: upload the next one before it ends".into_any(),
    };
    vec![
        ("For", view! { <span class="wrap">{names}</span> }.into_any()),
        (
            "Signed by",
            view! { {one.issuer.clone()}" "<span class="quiet">{format!("({})", source_words(one.source))}</span> }
                .into_any(),
        ),
        ("Valid from", at(one.not_before)),
        ("Ends", at(one.not_after)),
        ("Renewed", next),
        ("Serial", view! { <span class="wrap">{code("serial", one.serial.clone())}</span> }.into_any()),
    ]
}

/// What is told to who comes by HTTP.
pub fn https(served: &NameCertificate, form: &FormState) -> AnyView {
    let version = form.version(&served.version);
    let form = &form.unless_too_late();
    let now = served.hsts_s.map(|seconds| seconds.to_string()).unwrap_or_default();
    let mut options: Vec<(String, String)> =
        REMEMBERED.iter().map(|(value, text)| ((*value).to_owned(), (*text).to_owned())).collect();
    if !options.iter().any(|(value, _)| *value == now) {
        options.push((now.clone(), format!("For {now} seconds")));
    }
    let waits = served.served.is_none().then(|| {
        view! { <p class="quiet">"It holds from when on a certificate is served."</p> }
    });
    view! {
        <form method="post" action={to::<SetNameHttps>(&[&served.name])} class="form body">
            {stays_at(&path(served.name), "https")}
            <input type="hidden" name="version" value=version/>
            {check(form, "redirect", "Send who comes by HTTP to HTTPS", "What is asked for stays the same, with https:// before it", served.https_redirect)}
            {Field::new(form, "hsts_s", "Do browsers remember to come by HTTPS only (HSTS)?").suggest(now).hint("Until then they do not come at all when the certificate is none that they take. It can't be taken back before.").select(options)}
            {waits}
            <div><button class="btn">"Save HTTPS"</button></div>
        </form>
    }
    .into_any()
}

/// Bringing a certificate, and taking it away.
pub fn upload(name: &NameLine, served: &NameCertificate, form: &FormState) -> AnyView {
    let is_uploaded = served.served.as_ref().is_some_and(|one| one.source == CertificateSource::Uploaded);
    let remove = is_uploaded.then(|| {
        let question = "The name has a certificate of the configured issuer again, if there is one.";
        let post = to::<RemoveCertificate>(&[&served.name]);
        let hidden = stays_at(&path(served.name), "upload-remove");
        view! { <div class="body foot">{confirm_at("Remove certificate", &name.shown(), question, post, hidden)}</div> }
    });
    let open = form.was_sent();
    view! {
        <details class="more body" open=open>
            <summary>"Paste chain and key"</summary>
            <form method="post" action={to::<UploadCertificate>(&[&served.name])} class="form">
                {stays_at(&path(served.name), "upload")}
                <p class="quiet">"In place of the one that is got by itself. Nobody renews it: upload the next one before it ends."</p>
                {Field::new(form, "chain", "Certificates").required().mono().hint(format!("PEM: the certificate of {} first, then its issuer, then that one's issuer", name.shown())).lines(6)}
                {Field::new(form, "private_key", "Private key").required().mono().hint("PEM, without a passphrase. It is kept sealed, sent to the node only, and never shown again.").lines(4)}
                <div><button class="btn">"Upload certificate"</button></div>
            </form>
        </details>
        {remove}
    }
    .into_any()
}

/// The root that people trust once.
pub fn root(authority: &CertificateAuthority) -> AnyView {
    let rows = vec![
        ("SHA-256", copied("fingerprint", "the fingerprint", authority.fingerprint.clone())),
        ("Ends", at(authority.not_after)),
    ];
    view! {
        <p class="body quiet">"The authority of Corpus signed this certificate. Browsers take it once they trust its root: compare the fingerprint with what an operator tells you, and add it to your system or your browser."</p>
        {facts(rows)}
        <p class="body"><a class="btn" href="/certificates/root.pem" download="corpus-root.pem">"Download root"</a></p>
    }
    .into_any()
}
