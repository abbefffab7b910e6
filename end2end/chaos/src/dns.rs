//! The lab's DNS server, asked directly: what a zone holds.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::setting::Setting;

async fn ask(setting: &Setting, method: &str, zone: &str, body: &str) -> Result<String> {
    let host = setting.dns_api.strip_prefix("http://").context("the lab's API is plain HTTP")?.trim_end_matches('/');
    let request = format!(
        "{method} /api/v1/servers/localhost/zones/{zone}. HTTP/1.0\r\nHost: {host}\r\nX-API-Key: {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        setting.dns_api_key,
        body.len()
    );
    let talked = async {
        let mut stream = TcpStream::connect(host).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        anyhow::Ok(answer)
    };
    let answer = tokio::time::timeout(Duration::from_secs(10), talked).await.context("the DNS server is silent")??;
    let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP")?;
    if !head.split(' ').nth(1).is_some_and(|status| status.starts_with('2')) {
        bail!("{method} {zone}: {head}");
    }
    Ok(body.to_owned())
}

/// The names with an address in the zone, and the address of each.
pub async fn addresses(setting: &Setting, zone: &str) -> Result<Vec<(String, String)>> {
    let zone: Value = serde_json::from_str(&ask(setting, "GET", zone, "").await?)?;
    let sets = zone.get("rrsets").and_then(Value::as_array).context("no records")?;
    let text =
        |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().trim_end_matches('.').to_owned();
    let mut found = Vec::new();
    for set in sets.iter().filter(|set| set.get("type").and_then(Value::as_str) == Some("A")) {
        for record in set.get("records").and_then(Value::as_array).into_iter().flatten() {
            found.push((text(set.get("name")), text(record.get("content"))));
        }
    }
    Ok(found)
}

/// Removes all addresses from the zone.
pub async fn remove_records(setting: &Setting, zone: &str) -> Result<()> {
    let gone: Vec<Value> = addresses(setting, zone)
        .await?
        .into_iter()
        .map(|(name, _)| json!({ "name": format!("{name}."), "type": "A", "changetype": "DELETE" }))
        .collect();
    if !gone.is_empty() {
        ask(setting, "PATCH", zone, &json!({ "rrsets": gone }).to_string()).await?;
    }
    Ok(())
}
