//! What a patch can fail with, as the handler has to answer it.

use kubelith_meta::Status;
use kubelith_meta::status::ForeignResponse;

/// Each variant is one way a patch handler turns an error into a Status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// 400 with reason BadRequest and this message.
    #[error("{0}")]
    BadRequest(String),
    /// 413 with reason RequestEntityTooLarge; the Status says `Request entity too large: ` before this message.
    #[error("{0}")]
    TooLarge(String),
    /// 422 with reason Invalid and the generic message of that code: the text is for logs only.
    #[error("{0}")]
    Unprocessable(String),
    /// 500 without a reason, with this message: an error that the reference does not translate.
    #[error("{0}")]
    Internal(String),
}

impl From<PatchError> for Status {
    fn from(error: PatchError) -> Status {
        match error {
            PatchError::BadRequest(message) => Status::bad_request(message),
            PatchError::TooLarge(message) => Status::request_entity_too_large(message),
            PatchError::Unprocessable(_) => Status::from(ForeignResponse { code: 422, ..ForeignResponse::default() }),
            PatchError::Internal(message) => Status::unknown(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses() {
        let table = [
            (PatchError::BadRequest("b".into()), 400, "BadRequest", "b"),
            (PatchError::TooLarge("t".into()), 413, "RequestEntityTooLarge", "Request entity too large: t"),
            (
                PatchError::Unprocessable("u".into()),
                422,
                "Invalid",
                "the server rejected our request due to an error in our request",
            ),
            (PatchError::Internal("i".into()), 500, "", "i"),
        ];
        for (error, code, reason, message) in table {
            let status = Status::from(error);
            assert_eq!((status.code, status.reason.as_str(), status.message.as_str()), (code, reason, message));
        }
    }
}
