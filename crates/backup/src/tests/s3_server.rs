//! A real S3 server, moto's, on a port of this machine, which checks who asks and every signature.
//!
//! It is looked for at `CORPUS_TEST_S3` and in the PATH. Of signatures in the query of an address moto by itself knows nothing:
//! what it runs first has it check them too.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fs, thread};

use secrecy::SecretString;
use tempfile::TempDir;

use super::sshd::free_port;
use crate::{Access, S3Access, S3Options, Storage};

pub const BUCKET: &str = "backups";
const CHECKED_IN_QUERY: &str = include_str!("s3_server.py");
const POLICY: &str = "%7B%22Version%22%3A%222012-10-17%22%2C%22Statement%22%3A%5B%7B%22Effect%22%3A%22Allow%22%2C%22\
                      Action%22%3A%22s3%3A%2A%22%2C%22Resource%22%3A%22%2A%22%7D%5D%7D";

pub struct S3Server {
    dir: TempDir,
    pub port: u16,
    pub key_id: String,
    pub secret: String,
    child: Mutex<Option<Child>>,
}

impl S3Server {
    /// None where there is no such program.
    pub fn start() -> Option<Self> {
        let program = std::env::var_os("CORPUS_TEST_S3").unwrap_or_else(|| "moto_server".into());
        let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
        let log = fs::File::create(dir.path().join("log")).unwrap();
        // The name of what any Python runs first.
        fs::write(dir.path().join("sitecustomize.py"), CHECKED_IN_QUERY).unwrap();
        let started = Command::new(program)
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .env("PYTHONPATH", dir.path())
            .env("INITIAL_NO_AUTH_ACTION_COUNT", "1000")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        let Ok(child) = started else {
            assert!(std::env::var_os("CI").is_none(), "moto_server is not installed");
            return None;
        };
        let child = Mutex::new(Some(child));
        let mut server = Self { dir, port, key_id: String::new(), secret: String::new(), child };
        server.wait();
        server.iam("Action=CreateUser&UserName=backup");
        server.iam(&format!("Action=PutUserPolicy&UserName=backup&PolicyName=all&PolicyDocument={POLICY}"));
        let made = server.iam("Action=CreateAccessKey&UserName=backup");
        server.key_id = between(&made, "AccessKeyId");
        server.secret = between(&made, "SecretAccessKey");
        server.send("PUT", &format!("/{BUCKET}"), "s3", "");
        // From now on nobody does anything without a signature.
        server.send("POST", "/moto-api/reset-auth", "s3", "0");
        Some(server)
    }

    fn wait(&self) {
        let until = Instant::now() + Duration::from_mins(1);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            assert!(Instant::now() < until, "moto did not start: {}", self.log());
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn iam(&self, form: &str) -> String {
        self.send("POST", "/", "iam", &format!("{form}&Version=2010-05-08"))
    }

    /// As anybody.
    pub fn send(&self, method: &str, path: &str, service: &str, body: &str) -> String {
        let mut line = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        let kind = if service == "iam" { "application/x-www-form-urlencoded" } else { "text/plain" };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Length: {}\r\n\
             Content-Type: {kind}\r\nAuthorization: AWS4-HMAC-SHA256 \
             Credential=nobody/20260101/us-east-1/{service}/aws4_request, SignedHeaders=host, Signature=0\r\n\r\n{body}",
            self.port,
            body.len()
        );
        line.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        line.read_to_string(&mut answer).unwrap();
        answer
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    pub fn access(&self) -> Access {
        access(self.port, &self.key_id, &self.secret)
    }

    pub fn storage(&self, name: &str) -> Storage {
        Storage::new(format!("s3://{BUCKET}/{name}").parse().unwrap(), &self.access()).unwrap()
    }

    pub fn stop(&self) {
        if let Some(mut child) = self.child.lock().unwrap().take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

pub fn access(port: u16, key_id: &str, secret: &str) -> Access {
    let s3 = S3Access::new(S3Options {
        endpoint: format!("http://127.0.0.1:{port}").parse().unwrap(),
        region: "us-east-1".to_owned(),
        key_id: key_id.to_owned(),
        secret: SecretString::from(secret),
        bucket_in_host: false,
        authorities: None,
    });
    Access { sftp: None, s3: Some(Arc::new(s3.unwrap())) }
}

fn between(text: &str, element: &str) -> String {
    let (_, rest) = text.split_once(&format!("<{element}>")).unwrap_or_else(|| panic!("no {element} in {text}"));
    rest.split_once('<').unwrap().0.to_owned()
}

impl Drop for S3Server {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("--- moto:\n{}", self.log());
        }
        self.stop();
    }
}
