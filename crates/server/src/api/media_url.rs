//! The URLs of media samples.

use galley_domain::template::sample;

use crate::app::App;

/// The public URL of the sample with this handle; `None` if it was not uploaded to Galley.
pub(crate) fn for_handle(app: &App, handle: &str) -> Option<String> {
    let name = sample::name(handle)?;
    Some(format!("{}/media/{name}", app.public_url()))
}

/// The name of the sample at this URL; `None` if it is not a media URL of this service. The expiry of
/// a link is ignored, so that a client can write back what it has read.
pub(crate) fn sample_name<'a>(app: &App, url: &'a str) -> Option<&'a str> {
    let name = url.strip_prefix(app.public_url())?.strip_prefix("/media/")?;
    let name = name.split_once('?').map_or(name, |(name, _)| name);
    Some(name).filter(|name| sample::is_name(name))
}
