//! What a patch can fail with, as the handler has to answer it.

/// Each variant is one way a patch handler turns an error into a Status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// 400 with reason BadRequest and this message.
    #[error("{0}")]
    BadRequest(String),
    /// 413 with reason RequestEntityTooLarge; the Status says `Request entity too large: ` before this message.
    #[error("{0}")]
    TooLarge(String),
    /// 422 with reason Invalid and the generic message of that code (`the server rejected our request due to an
    /// error in our request`), empty details: the text is for logs only.
    #[error("{0}")]
    Unprocessable(String),
    /// 500 without a reason, with this message: an error that the reference does not translate.
    #[error("{0}")]
    Internal(String),
}

impl PatchError {
    /// The HTTP status code.
    pub fn code(&self) -> u16 {
        match self {
            PatchError::BadRequest(_) => 400,
            PatchError::TooLarge(_) => 413,
            PatchError::Unprocessable(_) => 422,
            PatchError::Internal(_) => 500,
        }
    }
}
