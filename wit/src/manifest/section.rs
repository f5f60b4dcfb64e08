//! The manifest inside a component: the custom section `noetl:manifest` at the top level.
//!
//! A component is one file and one digest, so code and request cannot be swapped apart. Only top-level
//! sections are looked at: a nested component can carry a manifest of its own, which says nothing about
//! the whole. Two sections are an error, as readers could disagree on which one counts. Lengths are the
//! file's own claims: `wasmparser` checks each against the bytes that are there.

use wasmparser::{Chunk, Encoding, Parser, Payload};

/// Name of the section.
pub const SECTION: &str = "noetl:manifest";

/// Largest manifest in bytes; a longer one is no manifest.
pub const MAX_BYTES: usize = 64 << 10;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SectionError {
    #[error("these bytes are not WebAssembly: {0}")]
    NotWasm(String),
    #[error("these bytes are a core module, not a component: build with `noetl plugin build`")]
    CoreModule,
    #[error("the component is cut short or damaged at byte {offset}: {problem}")]
    Damaged { offset: u64, problem: String },
    #[error("the component has a manifest already: embed into the component as the compiler made it")]
    Present,
    #[error("the component has two `noetl:manifest` sections: build it again with `noetl plugin build`")]
    Twice,
    #[error("the manifest has {0} bytes, more than the 65536 it may have")]
    TooLarge(usize),
    #[error("the manifest inside the component is not UTF-8 text")]
    NotText,
}

/// The component with the manifest's text appended as a custom section.
pub fn embed(component: &[u8], manifest_text: &str) -> Result<Vec<u8>, SectionError> {
    if manifest_text.len() > MAX_BYTES {
        return Err(SectionError::TooLarge(manifest_text.len()));
    }
    if extract(component)?.is_some() {
        return Err(SectionError::Present);
    }
    Ok(append(component, SECTION, manifest_text.as_bytes()))
}

/// The component with one more custom section at its end.
pub fn append(component: &[u8], name: &str, data: &[u8]) -> Vec<u8> {
    let mut content = Vec::with_capacity(name.len() + data.len() + 2);
    write_leb(&mut content, name.len());
    content.extend_from_slice(name.as_bytes());
    content.extend_from_slice(data);

    let mut out = Vec::with_capacity(component.len() + content.len() + 8);
    out.extend_from_slice(component);
    // A custom section has the id 0, in components as in core modules.
    out.push(0);
    write_leb(&mut out, content.len());
    out.extend_from_slice(&content);
    out
}

/// The content of the first top-level custom section of a name, if there is one.
pub fn find(component: &[u8], name: &str) -> Result<Option<Vec<u8>>, SectionError> {
    let mut found = None;
    walk(component, |payload| {
        if let Payload::CustomSection(section) = payload
            && section.name() == name
        {
            found.get_or_insert_with(|| section.data().to_vec());
        }
        Ok(())
    })?;
    Ok(found)
}

/// The manifest's text, if the component has one.
pub fn extract(component: &[u8]) -> Result<Option<String>, SectionError> {
    let mut found = None;
    walk(component, |payload| {
        let Payload::CustomSection(section) = payload else { return Ok(()) };
        if section.name() != SECTION {
            return Ok(());
        }
        if found.is_some() {
            return Err(SectionError::Twice);
        }
        if section.data().len() > MAX_BYTES {
            return Err(SectionError::TooLarge(section.data().len()));
        }
        let text = std::str::from_utf8(section.data()).map_err(|_| SectionError::NotText)?;
        found = Some(text.to_owned());
        Ok(())
    })?;
    Ok(found)
}

/// The component with another manifest in the place of the one it has: a new version of the same code.
pub fn replace(component: &[u8], manifest_text: &str) -> Result<Vec<u8>, SectionError> {
    let mut section = None;
    walk(component, |payload| {
        if let Payload::CustomSection(custom) = payload
            && custom.name() == SECTION
        {
            section = Some(custom.range());
        }
        Ok(())
    })?;
    let Some(content) = section else { return embed(component, manifest_text) };
    let index = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
    let (from, to) = (index(content.start), index(content.end));
    let mut header = vec![0];
    write_leb(&mut header, to.saturating_sub(from));
    let Some(start) = from.checked_sub(header.len()).filter(|start| component[*start..from] == header[..]) else {
        // Only `embed` writes this section, and it writes lengths in their shortest form.
        return Err(SectionError::Damaged { offset: content.start, problem: "a length in an unusual form".to_owned() });
    };
    embed(&[&component[..start], &component[to..]].concat(), manifest_text)
}

/// Shows every top-level section of a component to `visit`. What is nested is stepped over.
pub(crate) fn walk<'c>(
    component: &'c [u8],
    mut visit: impl FnMut(&Payload<'c>) -> Result<(), SectionError>,
) -> Result<(), SectionError> {
    if !component.starts_with(b"\0asm") {
        return Err(SectionError::NotWasm("they do not start with `\\0asm`".to_owned()));
    }
    let damaged = |offset: u64, problem: String| SectionError::Damaged { offset, problem };
    let mut parser = Parser::new(0);
    let mut at = 0;
    loop {
        let chunk = parser
            .parse(component.get(at..).unwrap_or_default(), true)
            .map_err(|error| damaged(error.offset(), error.message().to_owned()))?;
        let Chunk::Parsed { consumed, payload } = chunk else {
            return Err(damaged(at as u64, "more bytes were expected".to_owned()));
        };
        at += consumed;
        match &payload {
            Payload::Version { encoding: Encoding::Module, .. } => return Err(SectionError::CoreModule),
            Payload::ModuleSection { unchecked_range: inner, .. }
            | Payload::ComponentSection { unchecked_range: inner, .. } => {
                at = usize::try_from(inner.end).unwrap_or(usize::MAX);
                if at > component.len() {
                    return Err(damaged(inner.start, "a nested module reaches beyond the end".to_owned()));
                }
            }
            Payload::End(_) => return Ok(()),
            _ => visit(&payload)?,
        }
    }
}

/// Unsigned LEB128, as all lengths in WebAssembly.
fn write_leb(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
