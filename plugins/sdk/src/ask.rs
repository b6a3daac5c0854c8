//! Questions: what can be asked, how several are asked at once, and how the answers are read.

use crate::AskError;
use crate::Form;
use crate::contract::longshore::plugin::task::{
    self, ElicitAction, ElicitAnswer, InputAnswer, InputError, InputKind, InputRequest, Root,
    UrlRequest,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// One question. [`Form`], [`Confirm`], [`Page`], [`Sample`](crate::Sample) and [`Roots`] are.
pub trait Question {
    /// What it is answered with.
    type Answer;

    /// The question as the host wants it.
    ///
    /// # Errors
    /// If it is no valid question.
    fn request(&self) -> Result<InputRequest, AskError>;

    /// Reads the answer of the host.
    ///
    /// # Errors
    /// If the client refused, or the answer is not what was asked for.
    fn read(&self, answer: InputAnswer) -> Result<Self::Answer, AskError>;
}

/// What the user did with a form or a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply<T> {
    /// Filled in and sent.
    Accepted(T),
    /// Said no.
    Declined,
    /// Went away without an answer.
    Cancelled,
}

impl<T> Reply<T> {
    /// The answer, if there is one.
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accepted(answer) => Some(answer),
            Self::Declined | Self::Cancelled => None,
        }
    }
}

/// Asks the user to fill in `T`: a struct whose fields are texts, numbers, booleans, enumerations or lists of these.
///
/// # Errors
/// See [`AskError`].
pub fn ask<T: DeserializeOwned + JsonSchema>(message: &str) -> Result<Reply<T>, AskError> {
    form::<T>(message).ask()
}

/// Asks the user for a yes. Everything else is `false`.
///
/// # Errors
/// See [`AskError`].
pub fn confirm(message: &str) -> Result<bool, AskError> {
    Confirm::new(message).ask()
}

/// A form to be named, or to be asked together with others.
pub fn form<T: DeserializeOwned + JsonSchema>(message: &str) -> Form<T> {
    Form::new(message)
}

/// A page (an https: URL) that the user is asked to open. `Accepted` says that it was opened, not that anything was done there.
pub fn url(message: &str, url: &str) -> Page {
    Page {
        name: "page".into(),
        message: message.into(),
        url: url.into(),
    }
}

/// The folders that the client works in.
pub fn roots() -> Roots {
    Roots {
        name: "roots".into(),
    }
}

/// Asks several questions at once, as a tuple of up to six or as a `Vec`, and waits for all the answers.
///
/// ```no_run
/// # use longshore_plugin::{ask_all, roots, sample, Result};
/// # fn f() -> Result<()> {
/// let (haiku, roots) = ask_all((sample("Write a haiku."), roots()))?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// See [`AskError`].
pub fn ask_all<Q: Questions>(questions: Q) -> Result<Q::Answers, AskError> {
    let requests = questions.requests()?;
    let answers = task::request_input(&requests).map_err(|error| match error {
        InputError::Interrupted => AskError::Interrupted,
        InputError::Unsupported(what) => AskError::Unsupported(what),
        InputError::Invalid(why) => AskError::Invalid(why),
    })?;
    questions.read_all(&mut answers.into_iter())
}

/// Several questions.
pub trait Questions {
    /// Their answers, in the same order.
    type Answers;

    /// The questions as the host wants them.
    ///
    /// # Errors
    /// If one is no valid question.
    fn requests(&self) -> Result<Vec<InputRequest>, AskError>;

    /// Reads the answers, which come in the order of the questions.
    ///
    /// # Errors
    /// If one of them cannot be read.
    fn read_all(
        &self,
        answers: &mut dyn Iterator<Item = InputAnswer>,
    ) -> Result<Self::Answers, AskError>;
}

fn next<Q: Question>(
    question: &Q,
    answers: &mut dyn Iterator<Item = InputAnswer>,
) -> Result<Q::Answer, AskError> {
    let answer = answers.next();
    question.read(answer.ok_or_else(|| AskError::Unreadable("one is missing".into()))?)
}

impl<Q: Question> Questions for Vec<Q> {
    type Answers = Vec<Q::Answer>;

    fn requests(&self) -> Result<Vec<InputRequest>, AskError> {
        self.iter().map(Question::request).collect()
    }

    fn read_all(
        &self,
        answers: &mut dyn Iterator<Item = InputAnswer>,
    ) -> Result<Self::Answers, AskError> {
        self.iter()
            .map(|question| next(question, answers))
            .collect()
    }
}

macro_rules! tuples {
    ($(($($name:ident . $index:tt),+))+) => {
        $(impl<$($name: Question),+> Questions for ($($name,)+) {
            type Answers = ($($name::Answer,)+);

            fn requests(&self) -> Result<Vec<InputRequest>, AskError> {
                Ok(vec![$(self.$index.request()?),+])
            }

            fn read_all(
                &self,
                answers: &mut dyn Iterator<Item = InputAnswer>,
            ) -> Result<Self::Answers, AskError> {
                Ok(($(next(&self.$index, answers)?,)+))
            }
        })+
    };
}

tuples! {
    (A.0)
    (A.0, B.1)
    (A.0, B.1, C.2)
    (A.0, B.1, C.2, D.3)
    (A.0, B.1, C.2, D.3, E.4)
    (A.0, B.1, C.2, D.3, E.4, F.5)
}

/// Gives a question its name and its `ask`.
macro_rules! question_methods {
    () => {
        /// Names the question: 1 to 64 of `A-Z a-z 0-9 _ . -`. Clients see the name.
        #[must_use]
        pub fn named(mut self, name: &str) -> Self {
            self.name = name.into();
            self
        }

        /// Asks, and waits for the answer.
        ///
        /// # Errors
        /// See [`AskError`](crate::AskError).
        pub fn ask(self) -> Result<<Self as crate::Question>::Answer, crate::AskError> {
            Ok(crate::ask_all((self,))?.0)
        }
    };
}
pub(crate) use question_methods;

/// An answer of the wrong kind, or the client's refusal.
pub(crate) fn unexpected<T>(answer: InputAnswer) -> Result<T, AskError> {
    Err(match answer {
        InputAnswer::Refused(error) => AskError::Refused(error),
        InputAnswer::Elicited(_) | InputAnswer::Sampled(_) | InputAnswer::Roots(_) => {
            AskError::Unreadable("it is of another kind than the question".into())
        }
    })
}

/// Sorts out what the user did; `read` is for what was sent.
pub(crate) fn reply<T>(
    answer: InputAnswer,
    read: impl FnOnce(Option<String>) -> Result<T, AskError>,
) -> Result<Reply<T>, AskError> {
    match answer {
        InputAnswer::Elicited(ElicitAnswer { action, content }) => Ok(match action {
            ElicitAction::Accept => Reply::Accepted(read(content)?),
            ElicitAction::Decline => Reply::Declined,
            ElicitAction::Cancel => Reply::Cancelled,
        }),
        other => unexpected(other),
    }
}

/// A question for a yes.
#[derive(Debug, Clone)]
pub struct Confirm {
    form: Form<Yes>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct Yes {
    confirm: bool,
}

impl Confirm {
    /// `message` is what is to be confirmed.
    pub fn new(message: &str) -> Self {
        Self {
            form: Form::new(message).named("confirm"),
        }
    }

    /// Names the question: 1 to 64 of `A-Z a-z 0-9 _ . -`. Clients see the name.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self {
            form: self.form.named(name),
        }
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn ask(self) -> Result<bool, AskError> {
        Ok(ask_all((self,))?.0)
    }
}

impl Question for Confirm {
    type Answer = bool;

    fn request(&self) -> Result<InputRequest, AskError> {
        self.form.request()
    }

    fn read(&self, answer: InputAnswer) -> Result<bool, AskError> {
        let reply = self.form.read(answer)?;
        Ok(reply.accepted().is_some_and(|yes| yes.confirm))
    }
}

/// A page for the user to open.
#[derive(Debug, Clone)]
pub struct Page {
    name: String,
    message: String,
    url: String,
}

impl Page {
    question_methods!();
}

impl Question for Page {
    type Answer = Reply<()>;

    fn request(&self) -> Result<InputRequest, AskError> {
        let page = UrlRequest {
            message: self.message.clone(),
            url: self.url.clone(),
        };
        Ok(InputRequest {
            name: self.name.clone(),
            kind: InputKind::Url(page),
        })
    }

    fn read(&self, answer: InputAnswer) -> Result<Reply<()>, AskError> {
        reply(answer, |_| Ok(()))
    }
}

/// The question for the client's folders.
#[derive(Debug, Clone)]
pub struct Roots {
    name: String,
}

impl Roots {
    question_methods!();
}

impl Question for Roots {
    type Answer = Vec<Root>;

    fn request(&self) -> Result<InputRequest, AskError> {
        Ok(InputRequest {
            name: self.name.clone(),
            kind: InputKind::Roots,
        })
    }

    fn read(&self, answer: InputAnswer) -> Result<Vec<Root>, AskError> {
        match answer {
            InputAnswer::Roots(roots) => Ok(roots),
            other => unexpected(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RpcError;

    fn elicited(action: ElicitAction, content: Option<&str>) -> InputAnswer {
        InputAnswer::Elicited(ElicitAnswer {
            action,
            content: content.map(Into::into),
        })
    }

    #[test]
    fn only_an_accepted_true_confirms() {
        let question = Confirm::new("Delete it?");
        let read = |action, content| question.read(elicited(action, content)).unwrap();
        assert!(read(ElicitAction::Accept, Some(r#"{"confirm":true}"#)));
        assert!(!read(ElicitAction::Accept, Some(r#"{"confirm":false}"#)));
        assert!(!read(ElicitAction::Decline, None));
        assert!(!read(ElicitAction::Cancel, None));
    }

    #[test]
    fn answers_are_read_in_order_and_by_kind() {
        let questions = (Confirm::new("a"), roots());
        let right = vec![
            elicited(ElicitAction::Decline, None),
            InputAnswer::Roots(vec![]),
        ];
        let (confirmed, roots) = questions.read_all(&mut right.into_iter()).unwrap();
        assert!(!confirmed && roots.is_empty());

        let swapped = vec![InputAnswer::Roots(vec![]), InputAnswer::Roots(vec![])];
        let error = questions.read_all(&mut swapped.into_iter()).unwrap_err();
        assert!(matches!(error, AskError::Unreadable(_)));
    }

    #[test]
    fn a_refusal_keeps_the_clients_error() {
        let refused = InputAnswer::Refused(RpcError::new(7, "no"));
        let error = roots().read(refused).unwrap_err();
        assert_eq!(error, AskError::Refused(RpcError::new(7, "no")));
    }
}
