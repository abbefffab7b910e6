//! The one file of a simulated host that the controller reads and writes by SFTP:
//! `authorized_keys`, and the part that is moved over it. Nothing else is kept.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use russh_sftp::protocol::{Attrs, Data, FileAttributes, Handle, OpenFlags, Status, StatusCode, Version};
use russh_sftp::server::Handler;

use crate::node::Node;

/// Serves one SFTP session.
pub(crate) struct Files {
    node: Arc<Node>,
}

impl Files {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node }
    }

    fn text(&self) -> MutexGuard<'_, Vec<u8>> {
        self.node.authorized_keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attributes(&self) -> FileAttributes {
        FileAttributes { size: u64::try_from(self.text().len()).ok(), ..FileAttributes::empty() }
    }
}

fn ok(id: u32) -> Status {
    Status { id, status_code: StatusCode::Ok, error_message: String::new(), language_tag: String::new() }
}

impl Handler for Files {
    type Error = StatusCode;

    fn unimplemented(&self) -> StatusCode {
        StatusCode::OpUnsupported
    }

    async fn init(&mut self, _: u32, _: HashMap<String, String>) -> Result<Version, StatusCode> {
        Ok(Version::new())
    }

    async fn mkdir(&mut self, id: u32, _: String, _: FileAttributes) -> Result<Status, StatusCode> {
        Ok(ok(id))
    }

    async fn setstat(&mut self, id: u32, _: String, _: FileAttributes) -> Result<Status, StatusCode> {
        Ok(ok(id))
    }

    async fn open(&mut self, id: u32, name: String, flags: OpenFlags, _: FileAttributes) -> Result<Handle, StatusCode> {
        if !name.starts_with(".ssh/authorized_keys") {
            return Err(StatusCode::NoSuchFile);
        }
        if flags.contains(OpenFlags::TRUNCATE) {
            self.text().clear();
        }
        // Where an append begins is all that a handle has to know.
        let begin = if flags.contains(OpenFlags::APPEND) { self.text().len() } else { 0 };
        Ok(Handle { id, handle: begin.to_string() })
    }

    async fn close(&mut self, id: u32, _: String) -> Result<Status, StatusCode> {
        Ok(ok(id))
    }

    async fn stat(&mut self, id: u32, _: String) -> Result<Attrs, StatusCode> {
        Ok(Attrs { id, attrs: self.attributes() })
    }

    async fn fstat(&mut self, id: u32, _: String) -> Result<Attrs, StatusCode> {
        Ok(Attrs { id, attrs: self.attributes() })
    }

    async fn read(&mut self, id: u32, _: String, offset: u64, len: u32) -> Result<Data, StatusCode> {
        let text = self.text();
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
        let to = from.saturating_add(usize::try_from(len).unwrap_or(usize::MAX)).min(text.len());
        match text.get(from..to) {
            Some(data) if !data.is_empty() => Ok(Data { id, data: data.to_vec() }),
            _ => Err(StatusCode::Eof),
        }
    }

    async fn write(&mut self, id: u32, handle: String, offset: u64, data: Vec<u8>) -> Result<Status, StatusCode> {
        let begin: usize = handle.parse().map_err(|_| StatusCode::BadMessage)?;
        let mut text = self.text();
        text.truncate(begin + usize::try_from(offset).unwrap_or_default());
        text.extend_from_slice(&data);
        Ok(ok(id))
    }
}
