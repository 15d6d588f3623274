//! Puts templates aside, and takes them back. The calls have another address than all others.

use galley_domain::upstream::{CallFailure, CallKind, RemoteId, refused_for};
use serde_json::json;

use super::GraphUpstream;
use crate::{
    response::{Archiving, archiving},
    secret::Secret,
    transport::{Method, Request, Transport},
};

impl<T: Transport> GraphUpstream<T> {
    /// Makes a call about one template. A response of success can tell that it was not changed.
    pub(super) async fn change_archive(
        &self,
        kind: CallKind,
        id: &RemoteId,
    ) -> Result<(), CallFailure> {
        let (edge, changed) = match kind {
            CallKind::Unarchive => ("unarchive", "unarchived_templates"),
            _ => ("archive", "archived_templates"),
        };
        let url = self.dialect.archive_url(edge, &self.token);
        let request = Request { url, ..self.request(kind, Method::Post, &[], &[]) };
        let document = json!({"hsm_ids": [id.as_str()]}).to_string();
        let response = self.call(kind, Self::with_document(request, &document)).await?;
        match archiving(&response.body, changed, id.as_str()) {
            Archiving::Changed => Ok(()),
            Archiving::Failed(reason) => {
                let secrets = self.secrets();
                let secrets: Vec<&str> = secrets.iter().map(Secret::expose).collect();
                Err(refused_for(&reason, &secrets))
            }
            Archiving::Unknown => Err(self.failure(kind, &response)),
        }
    }
}
