//! Checks of the media samples that a document names.

use galley_domain::{
    id::AccountId,
    template::sample::{self, Mention},
    violation::{MAX_LISTED, Rule, Violation},
};
use galley_store::UNUSED_MEDIA_DAYS;

use super::{media_url, problem::Problem};
use crate::app::App;

/// What is wrong with the samples that a document names, as many of them as are told. Handles from
/// elsewhere are taken as they are: nobody here knows what stands behind them.
pub(crate) async fn violations(
    app: &App,
    account: AccountId,
    mentions: &[Mention],
) -> Result<Vec<Violation>, Problem> {
    let mut found = Vec::new();
    for mention in mentions.iter().take(MAX_LISTED) {
        let Mention { pointer, handle, format } = mention;
        let name = sample::name(handle).or_else(|| media_url::name_at(app, handle));
        if name.is_none() && !sample::is_ours(handle) {
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
        let Some(media) = media else {
            let hint = format!(
                "upload the file and use the `h` of that; one that no template names is kept for {UNUSED_MEDIA_DAYS} days"
            );
            let message = "names no file that the account has uploaded".to_owned();
            found.push(violation(Rule::SampleUnknown, message, hint));
            continue;
        };
        let types = sample::types(format);
        if !types.is_empty() && !types.contains(&&*media.file_type) {
            let message = format!("is a file of the type {}", media.file_type);
            let hint = format!("{format} takes {}", types.join(" or "));
            found.push(violation(Rule::SampleUnfit, message, hint));
        }
    }
    Ok(found)
}
