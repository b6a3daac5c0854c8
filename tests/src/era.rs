//! Of which era a message is, and whether it fits the schema of that era. All that the tests send and get is judged here or,
//! where there is one era only, by `schema` and `legacy`.

use crate::legacy_schema::{self, revision};
use crate::schema::{self, Source, Verdict, must};
use serde_json::Value;
use std::collections::HashMap;

/// The member of `_meta` that makes a request a modern one.
const VERSION: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";
const LOG_LEVEL: &str = "/params/_meta/io.modelcontextprotocol~1logLevel";
const SUBSCRIPTION: &str = "/params/_meta/io.modelcontextprotocol~1subscriptionId";

/// A message of a client. An answer to a question has no method.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    pub(crate) is_modern: bool,
    pub(crate) method: String,
    message: Value,
}

impl Said {
    /// What a client sends.
    pub(crate) fn of(message: &Value) -> Self {
        Self {
            is_modern: message.pointer(VERSION).is_some(),
            method: message["method"].as_str().unwrap_or_default().to_owned(),
            message: message.clone(),
        }
    }

    /// Judges it, by this version if it is of a session.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn verdict(&self, session: Source) -> Verdict {
        if self.is_modern {
            schema::request(&self.message)
        } else {
            legacy_schema::said(session, &self.message)
        }
    }

    /// Judges what the server sends in reply: the response, or what comes before it. What has a result must have been right itself.
    ///
    /// # Errors
    /// What is wrong with either.
    pub(crate) fn reply(&self, session: Source, reply: &Value) -> Verdict {
        if self.is_modern {
            schema::reply(&self.method, reply)?;
        } else {
            legacy_schema::reply(session, &self.method, reply)?;
        }
        if reply.get("result").is_none() || self.message.is_null() {
            return Ok(());
        }
        let verdict = self.verdict(session);
        verdict.map_err(|fault| format!("served, and wrong: {fault}"))
    }
}

/// A pipe: both eras may be spoken on it in turn, and nothing but the message itself says in which it is.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    /// The client's requests by id.
    asked: HashMap<String, Said>,
    /// The version of the session, once there is one.
    session: Option<Source>,
}

impl Pipe {
    /// Takes note of what the client sends.
    pub(crate) fn sent(&mut self, said: Said) {
        if let (Some(id), false) = (said.message.get("id"), said.method.is_empty()) {
            self.asked.insert(id.to_string(), said);
        }
    }

    /// Judges what the server sends.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn came(&mut self, message: &Value) -> Verdict {
        match (message["method"].as_str(), message.get("id")) {
            (None, Some(id)) => self.response(id, message),
            // It could not be read whose response it is.
            (None, None) => schema::reply("", message),
            (Some(method), None) => self.notification(method, message),
            (Some(_), Some(_)) => {
                let session = self.session.ok_or("a request without a session")?;
                legacy_schema::reply(session, "", message)
            }
        }
    }

    fn response(&mut self, id: &Value, message: &Value) -> Verdict {
        let Some(said) = self.asked.get(&id.to_string()) else {
            // The tests send lines that they could not read themselves.
            let rule = "a result of nothing that was asked";
            must(message.get("result").is_none(), rule, message)?;
            return schema::reply("", message);
        };
        if let ("initialize", Some(agreed)) = (
            said.method.as_str(),
            message["result"]["protocolVersion"].as_str(),
        ) {
            self.session = Some(revision(agreed));
        }
        said.reply(self.session.unwrap_or(Source::Latest), message)
    }

    fn notification(&self, method: &str, message: &Value) -> Verdict {
        let params = &message["params"];
        let modern = || schema::reply("", message);
        let Some(session) = self.session else {
            modern()?;
            return self.is_owed(method, params);
        };
        let legacy = || legacy_schema::reply(session, "", message);
        let is_modern = match method {
            "notifications/progress" => {
                let asked =
                    self.asked_with("/params/_meta/progressToken", &params["progressToken"]);
                asked.ok_or("progress that nobody wants")?.is_modern
            }
            "notifications/cancelled" => self.is_stream(&params["requestId"]),
            // Both eras have the same one.
            "notifications/message" => return legacy().or_else(|_| modern()),
            _ => message.pointer(SUBSCRIPTION).is_some(),
        };
        if is_modern { modern() } else { legacy() }
    }

    /// Where no session has begun, a request must have asked for it.
    fn is_owed(&self, method: &str, params: &Value) -> Verdict {
        let owed = match method {
            "notifications/progress" => {
                let token = &params["progressToken"];
                self.asked_with("/params/_meta/progressToken", token)
                    .is_some()
            }
            "notifications/message" => {
                let mut asked = self.asked.values();
                asked.any(|said| said.message.pointer(LOG_LEVEL).is_some())
            }
            "notifications/cancelled" => self.is_stream(&params["requestId"]),
            _ => self.is_stream(&params["_meta"]["io.modelcontextprotocol/subscriptionId"]),
        };
        must(owed, "nobody asked for it", params)
    }

    fn asked_with(&self, place: &str, value: &Value) -> Option<&Said> {
        let mut asked = self.asked.values();
        asked.find(|said| said.message.pointer(place) == Some(value))
    }

    /// Is this the id of a stream of the modern era?
    fn is_stream(&self, id: &Value) -> bool {
        let asked = self.asked.get(&id.to_string());
        asked.is_some_and(|said| said.is_modern && said.method == "subscriptions/listen")
    }
}

/// Judges all that a client and a server said to each other over a pipe, line by line; the methods that were called.
///
/// # Errors
/// What is no JSON, or does not fit the schemas.
pub fn judge_lines(sent: &str, received: &str) -> Result<Vec<String>, String> {
    let parse = |line: &str| -> Result<Value, String> {
        serde_json::from_str(line).map_err(|error| format!("{error}: {line:?}"))
    };
    let (mut pipe, mut methods) = (Pipe::default(), Vec::new());
    for line in sent.lines() {
        let said = Said::of(&parse(line)?);
        let verdict = said.verdict(Source::Latest);
        verdict.map_err(|fault| format!("the client's message: {fault}"))?;
        methods.push(said.method.clone());
        pipe.sent(said);
    }
    for line in received.lines() {
        let verdict = pipe.came(&parse(line)?);
        verdict.map_err(|fault| format!("the server's message: {fault}"))?;
    }
    Ok(methods)
}
