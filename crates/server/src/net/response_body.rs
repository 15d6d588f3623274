//! A response body as hyper gets it: in frames of bounded size, one at a time.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::activity::ConnectionActivity;

/// Maximum size of a frame. hyper copies each frame into its write buffer, and the buffer stays with
/// the connection: this bounds what a client that does not read costs, whatever the size of the body.
pub(super) const MAX_FRAME_BYTES: usize = 32 * 1_024;

/// A response body that gives hyper the next frame only after the previous one was written. Tells
/// the [`ConnectionActivity`] when hyper has taken all of it.
pub(super) struct ResponseBody {
    body: Body,
    /// The rest of a frame that is larger than [`MAX_FRAME_BYTES`].
    rest: Bytes,
    activity: Arc<ConnectionActivity>,
}

impl ResponseBody {
    pub(super) fn new(body: Body, activity: Arc<ConnectionActivity>) -> Self {
        activity.begin_response();
        Self { body, rest: Bytes::new(), activity }
    }

    /// The next frame of `rest`.
    fn split_frame(&mut self) -> Bytes {
        let frame = self.rest.split_to(self.rest.len().min(MAX_FRAME_BYTES));
        if !self.is_end_stream() {
            self.activity.sending().buffer_frame();
        }
        frame
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.activity.sending().must_wait() {
            return Poll::Pending;
        }
        if self.rest.is_empty() {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            };
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        Poll::Ready(Some(Ok(Frame::data(self.split_frame()))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, hint) = (self.rest.len() as u64, self.body.size_hint());
        let mut total = SizeHint::new();
        total.set_lower(hint.lower() + rest);
        if let Some(upper) = hint.upper() {
            total.set_upper(upper + rest);
        }
        total
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.activity.sending().end_body();
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::{super::activity::Phase, *};

    fn poll(body: &mut ResponseBody) -> Poll<Option<Bytes>> {
        let mut context = Context::from_waker(Waker::noop());
        let frame = Pin::new(body).poll_frame(&mut context);
        frame.map(|frame| Some(frame?.expect("the body is whole").into_data().expect("data")))
    }

    fn response(length: usize) -> (ResponseBody, Arc<ConnectionActivity>) {
        let activity = Arc::new(ConnectionActivity::new(Phase::Processing));
        (ResponseBody::new(Body::from(vec![7; length]), Arc::clone(&activity)), activity)
    }

    #[test]
    fn a_frame_is_given_when_the_previous_one_was_written() {
        let (mut body, activity) = response(2 * MAX_FRAME_BYTES + 1);
        assert_eq!(body.size_hint().exact(), Some(2 * MAX_FRAME_BYTES as u64 + 1));
        for length in [MAX_FRAME_BYTES, MAX_FRAME_BYTES, 1] {
            assert_eq!(poll(&mut body), Poll::Ready(Some(vec![7; length].into())));
            if length == MAX_FRAME_BYTES {
                assert_eq!(poll(&mut body), Poll::Pending);
                assert!(activity.record_flush(), "the body waits for it");
            }
        }
        assert!(body.is_end_stream());
        assert_eq!(poll(&mut body), Poll::Ready(None));
    }

    #[test]
    fn a_small_body_is_one_frame_and_waits_for_nothing() {
        let (mut body, activity) = response(100);
        assert_eq!(poll(&mut body), Poll::Ready(Some(vec![7; 100].into())));
        assert!(body.is_end_stream());
        assert!(!activity.record_flush());
    }
}
