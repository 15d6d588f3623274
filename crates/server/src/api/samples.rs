//! The media samples to which a document refers: their URLs and handles, and whether they fit.

use galley_domain::{
    document::Json,
    id::AccountId,
    template::sample::{self, SampleReference},
    violation::{MAX_LISTED, Rule, Violation, Violations},
};
use galley_store::UNUSED_MEDIA_DAYS;
use jiff::{SignedDuration, Timestamp};

use super::{emulated_time, media_url, problem::Problem};
use crate::app::App;

/// The member of a header's example that contains handles.
const HANDLES: &str = "header_handle";

/// Replaces the URLs under which Galley serves samples with their handles.
pub(crate) fn replace_urls(app: &App, value: &mut Json<'_>) {
    match value {
        Json::Array(items) => {
            for item in items {
                replace_urls(app, item);
            }
        }
        Json::Object(members) => {
            for member in members {
                match &mut member.value {
                    Json::Array(handles) if member.key == HANDLES => {
                        for handle in handles {
                            replace_url(app, handle);
                        }
                    }
                    handle @ Json::String(_) if member.key == HANDLES => replace_url(app, handle),
                    other => replace_urls(app, other),
                }
            }
        }
        _ => {}
    }
}

fn replace_url(app: &App, value: &mut Json<'_>) {
    let name = value.as_str().and_then(|url| media_url::sample_name(app, url));
    if let Some(handle) = name.map(sample::handle) {
        *value = Json::String(handle.into());
    }
}

/// The violations of a document's media samples, checking at most as many as a response lists.
/// Handles that Galley did not issue are accepted unchecked, because Galley cannot resolve them.
pub(crate) async fn violations(
    app: &App,
    account: AccountId,
    mentions: &[SampleReference],
) -> Result<Vec<Violation>, Problem> {
    let mut found = Vec::new();
    for mention in mentions.iter().take(MAX_LISTED) {
        let SampleReference { pointer, handle, format } = mention;
        let name = sample::name(handle);
        if name.is_none() && !sample::is_galley_handle(handle) {
            continue;
        }
        let media = match name {
            Some(name) => app.store().sample(account, name, app.clock().now()).await?,
            None => None,
        };
        let violation = |rule, message: String, hint: String| Violation {
            pointer: pointer.clone(),
            rule,
            message,
            hint: Some(hint),
            span: None,
        };
        if let Some(began) = media.as_ref().and_then(|media| media.emulated_at)
            && is_expired(app, account, began).await?
        {
            let hint = "upload the file again and use the `h` of the response".to_owned();
            let message = format!(
                "refers to a file that was uploaded more than {UNUSED_MEDIA_DAYS} days ago on the clock of the account, and that no template uses"
            );
            found.push(violation(Rule::SampleUnknown, message, hint));
            continue;
        }
        let Some(media) = media else {
            let hint = format!(
                "upload the file and use the `h` of the response; a file that no template uses is deleted after {UNUSED_MEDIA_DAYS} days"
            );
            let message = "refers to a file that the account has not uploaded".to_owned();
            found.push(violation(Rule::SampleUnknown, message, hint));
            continue;
        };
        let types = sample::media_types(format);
        if !types.is_empty() && !types.contains(&&*media.file_type) {
            let message = format!("refers to a file of type {}", media.file_type);
            let hint = format!("{format} requires {}", types.join(" or "));
            found.push(violation(Rule::SampleUnfit, message, hint));
        }
    }
    Ok(found)
}

/// Whether a sample that no template uses has expired on the clock of an emulator account.
async fn is_expired(app: &App, account: AccountId, began: Timestamp) -> Result<bool, Problem> {
    let now = emulated_time::of_account_id(app, account).await?;
    let lifetime = SignedDuration::from_hours(24 * UNUSED_MEDIA_DAYS);
    Ok(now.is_some_and(|now| now.duration_since(began) > lifetime))
}

/// What was read of a document, or all violations of the document and of its samples.
pub(crate) async fn checked<T>(
    app: &App,
    account: AccountId,
    mentions: &[SampleReference],
    read: Result<T, Violations>,
) -> Result<Result<T, Violations>, Problem> {
    let found = violations(app, account, mentions).await?;
    Ok(match read {
        Ok(read) => Violations::new(found).map_or(Ok(read), Err),
        Err(violations) => Err(violations.with(found)),
    })
}
