//! The URLs of media samples.

use galley_domain::template::sample;

use crate::app::App;

/// Where the sample with that handle is read, if it was uploaded here.
pub(crate) fn address(app: &App, handle: &str) -> Option<String> {
    let name = sample::name(handle)?;
    Some(format!("{}/media/{name}", app.public_url()))
}

/// The name of the sample that is read at that address, if it is one of ours.
pub(crate) fn name_at<'a>(app: &App, address: &'a str) -> Option<&'a str> {
    let name = address.strip_prefix(app.public_url())?.strip_prefix("/media/")?;
    Some(name).filter(|name| sample::is_name(name))
}
