//! Reads the file `hello.txt` of the operator's folder; without one, answers with why there is none.

use noetl_sdk::Failure;
use noetl_sdk::files::{self, Error};

pub fn probe(_: &[u8]) -> Result<Vec<u8>, Failure> {
    match files::read("hello.txt") {
        Err(Error::NoFolder(why)) => Ok(why.into_bytes()),
        read => Ok(read?),
    }
}
