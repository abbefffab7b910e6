//! A server for tests: the real one, on a database and a port of its own.

use std::net::SocketAddr;
use std::path::Path;

use corpus_server::config::Settings;
use corpus_server::serve::Server;
use reqwest::header::{COOKIE, ORIGIN, REFERER, SET_COOKIE};
use reqwest::{Client, Response, redirect};
use secrecy::ExposeSecret;
use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub struct Running {
    pub url: String,
    /// Where its git server listens.
    pub git: Option<SocketAddr>,
    pub admin: String,
    pub client: Client,
    pub folder: TempDir,
    end: Option<oneshot::Sender<()>>,
    served: JoinHandle<std::io::Result<()>>,
}

/// The URL of the database that `sqlx::test` made.
pub fn url_of(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap();
    let mut url = url::Url::parse(&std::env::var("DATABASE_URL").unwrap()).unwrap();
    url.set_path(database);
    url.into()
}

pub fn install_crypto() {
    rustls::crypto::ring::default_provider().install_default().ok();
}

/// Settings on that database, with more of the configuration file's text.
pub fn settings(pool: &PgPool, folder: &Path, more: &str) -> Settings {
    let site = folder.join("site");
    std::fs::create_dir_all(site.join("pkg")).unwrap();
    std::fs::write(site.join("pkg/corpus.0123456789.js"), "export default 1;").unwrap();
    std::fs::write(site.join("pkg/corpus.0123456789.js.br"), "compressed").unwrap();
    std::fs::write(site.join("pkg/corpus.css"), "body{}").unwrap();
    std::fs::write(site.join("hash.txt"), "js: 0123456789\nwasm: abcdef0123\n").unwrap();
    std::fs::write(folder.join("agent"), "no agent").unwrap();
    let at = |name: &str| folder.join(name).display().to_string();
    let text = format!(
        "listen = '127.0.0.1:0'\ndatabase_url = '{}'\nsite_folder = '{}'\ndata_folder = '{}'\nagent_binary = '{}'\n{more}",
        url_of(&pool.connect_options()),
        at("site"),
        at("data"),
        at("agent"),
    );
    let file = (Path::new("test.toml"), text.parse().unwrap());
    Settings::from_parts(Some(file), std::iter::empty()).unwrap()
}

impl Running {
    pub async fn start(pool: &PgPool, more: &str) -> Self {
        install_crypto();
        let folder = TempDir::new().unwrap();
        let started = Server::start(settings(pool, folder.path(), more)).await.unwrap();
        let address: SocketAddr = started.address().unwrap();
        let git = started.git_address().transpose().unwrap();
        let admin = started.new_admin.as_ref().unwrap().expose_secret().to_owned();
        let (end, ended) = oneshot::channel::<()>();
        let served = tokio::spawn(started.run(async move {
            ended.await.ok();
        }));
        let client = Client::builder().redirect(redirect::Policy::none()).build().unwrap();
        Self { url: format!("http://{address}"), git, admin, client, folder, end: Some(end), served }
    }

    pub async fn get(&self, path: &str, cookie: &str) -> Response {
        self.client.get(format!("{}{path}", self.url)).header(COOKIE, cookie).send().await.unwrap()
    }

    pub async fn post(&self, path: &str, cookie: &str, form: &[(&str, &str)]) -> Response {
        self.send(path, cookie, form, None).await
    }

    /// Posts as a browser does from one of our pages.
    pub async fn post_from(&self, page: &str, path: &str, cookie: &str, form: &[(&str, &str)]) -> Response {
        self.send(path, cookie, form, Some(&format!("{}{page}", self.url))).await
    }

    /// Posts, and goes to the form if that is shown again, as a browser does.
    pub async fn submit(&self, path: &str, cookie: &str, form: &[(&str, &str)]) -> Response {
        let answer = self.post(path, cookie, form).await;
        let again = header(&answer, "location");
        if again.contains("kept=") { self.get(again, cookie).await } else { answer }
    }

    pub async fn send(&self, path: &str, cookie: &str, form: &[(&str, &str)], referer: Option<&str>) -> Response {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = self.client.post(format!("{}{path}", self.url)).header(COOKIE, cookie).header(ORIGIN, &self.url);
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(body);
        let request = referer.into_iter().fold(request, |request, page| request.header(REFERER, page));
        request.send().await.unwrap()
    }

    pub async fn sign_in(&self, cookie: &str, login: &str, password: &str) -> Response {
        self.post("/login", cookie, &[("login", login), ("password", password), ("next", "/nodes")]).await
    }

    /// The cookie of a signed-in administrator.
    pub async fn as_admin(&self) -> String {
        cookie_of(&self.sign_in("", "admin", &self.admin).await)
    }

    pub async fn stop(mut self) {
        self.end.take().unwrap().send(()).unwrap();
        self.served.await.unwrap().unwrap();
    }
}

pub fn set_cookies(response: &Response) -> Vec<String> {
    response.headers().get_all(SET_COOKIE).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
}

pub fn cookie_of(response: &Response) -> String {
    let cookies = set_cookies(response);
    let cookie = cookies.first().unwrap_or_else(|| panic!("no cookie in {response:?}"));
    cookie.split(';').next().unwrap().to_owned()
}

pub fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}
