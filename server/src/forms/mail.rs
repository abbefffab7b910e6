//! The form about mail.

use axum::response::Response;
use corpus_domain::MailPreference;

use super::Sent;

/// Sets which mail the member wants.
pub async fn prefer(sent: Sent) -> Response {
    let done = async {
        let wants: MailPreference = sent.only("wants")?;
        sent.posted.web.controller.set_mail_preference(&sent.who, wants).await?;
        Ok("/mail".to_owned())
    };
    let done = done.await;
    sent.answer("/mail", "", done).await
}
