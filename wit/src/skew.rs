//! Where a component and the contract disagree, in lines a plugin's author can act on.
//!
//! A linker only says that some type does not match. Here each function and type of each `noetl:*` interface
//! is held against ours: records, variants, enums and flags by their parts, everything else by how it is
//! written, with aliases followed to what they stand for, because that is all a component keeps of them.
//! What a component leaves out of an imported interface it does not need, which is no difference.

use wit_parser::{
    Function, Handle, Interface, InterfaceId, Resolve, Type, TypeDefKind, TypeId, WorldId, WorldItem, WorldKey,
};

use crate::ids::Version;
use crate::manifest::{Manifest, World};
use crate::packages;

/// All differences of a decoded component to a world of ours, imports first.
pub fn structural_diff(resolve: &Resolve, component: WorldId, world: World) -> Vec<String> {
    let mut lines = import_differences(resolve, component);
    lines.extend(export_differences(resolve, component, world));
    lines
}

/// Differences in what the component imports of us.
pub fn import_differences(resolve: &Resolve, component: WorldId) -> Vec<String> {
    let mut lines = Vec::new();
    for item in resolve.worlds[component].imports.values() {
        if let WorldItem::Interface { id, .. } = item {
            import(resolve, *id, &mut lines);
        }
    }
    lines
}

/// Differences in what the component exports to us.
pub fn export_differences(resolve: &Resolve, component: WorldId, world: World) -> Vec<String> {
    let ours = Side { resolve: packages::resolve(), name: "the world" };
    let theirs = Side { resolve, name: "the component" };
    let mut lines = Vec::new();
    for (key, item) in &ours.resolve.worlds[packages::world(world)].exports {
        if let (WorldKey::Interface(_), WorldItem::Interface { id, .. }) = (key, item) {
            export_interface(&ours, *id, &theirs, component, &mut lines);
        }
        let (WorldKey::Name(name), WorldItem::Function(wanted)) = (key, item) else { continue };
        match resolve.worlds[component].exports.get(key) {
            Some(WorldItem::Function(found)) => {
                function(&format!("export `{name}`"), &theirs, found, &ours, wanted, &mut lines);
            }
            Some(_) => lines.push(format!("export `{name}` is not a function")),
            None => {
                let signature = ours.signature(wanted);
                lines.push(format!("missing export `{name}`: a {world} exports `{name}: {signature}`"));
            }
        }
    }
    // What a component says about itself is optional, and held against ours where it is there.
    let said = |key: &WorldKey| resolve.name_world_key(key).starts_with("noetl:describe/describing@0.1.");
    if resolve.worlds[component].exports.keys().any(said)
        && let Some((id, _)) = packages::serving(packages::DESCRIBE_PACKAGE, "describing", &Version::new(0, 1, 0))
    {
        export_interface(&ours, id, &theirs, component, &mut lines);
    }
    lines
}

/// An interface the world exports, held against the component's of the same name and track of versions.
fn export_interface(ours: &Side<'_>, id: InterfaceId, theirs: &Side<'_>, component: WorldId, lines: &mut Vec<String>) {
    let name = ours.resolve.id_of(id).unwrap_or_default();
    let track =
        |name: &str| name.split_once('@').map(|(name, version)| (name.to_owned(), Version::parse(version).ok()));
    let same = |other: &str| match (track(&name), track(other)) {
        (Some((left, Some(our))), Some((right, Some(their)))) => left == right && packages::same_track(&our, &their),
        _ => false,
    };
    let exports = &theirs.resolve.worlds[component].exports;
    let found = exports.iter().find_map(|(key, item)| match item {
        WorldItem::Interface { id, .. } if same(&theirs.resolve.name_world_key(key)) => Some(*id),
        _ => None,
    });
    let Some(found) = found else {
        lines.push(format!("missing export `{name}`"));
        return;
    };
    for (function_name, wanted) in &ours.resolve.interfaces[id].functions {
        match theirs.resolve.interfaces[found].functions.get(function_name) {
            Some(found) => function(&format!("export `{name}`: `{function_name}`"), theirs, found, ours, wanted, lines),
            None => lines.push(format!("export `{name}` lacks `{function_name}: {}`", ours.signature(wanted))),
        }
    }
}

/// Requirements of `[contract]` that this host does not meet.
pub fn unmet_requirements(manifest: &Manifest) -> Vec<String> {
    let unmet = manifest.contract.iter().filter_map(|(package, requirement)| {
        let versions = packages::versions(package);
        let met = versions.iter().any(|version| requirement.matches(version));
        (!met).then(|| format!("the plugin needs {package} {requirement}, {}", host_has(package)))
    });
    unmet.collect()
}

fn host_has(package: &str) -> String {
    let versions: Vec<String> = packages::versions(package).iter().map(ToString::to_string).collect();
    match versions.as_slice() {
        [] => format!("the host has no package `{package}`"),
        versions => format!("the host has {}", versions.join(", ")),
    }
}

fn import(resolve: &Resolve, id: InterfaceId, lines: &mut Vec<String>) {
    let theirs = &resolve.interfaces[id];
    let Some(package) = theirs.package.map(|package| &resolve.packages[package].name) else { return };
    if package.namespace != "noetl" {
        return;
    }
    let full = resolve.id_of(id).unwrap_or_default();
    let bare = format!("{}:{}", package.namespace, package.name);
    let Some(version) = &package.version else {
        lines.push(format!("imports {full} without a version, {}", host_has(&bare)));
        return;
    };
    let interface = theirs.name.as_deref().unwrap_or_default();
    let Some((ours, served)) = packages::serving(&bare, interface, version) else {
        let track = packages::versions(&bare).into_iter().find(|ours| packages::same_track(ours, version));
        lines.push(match track {
            Some(ours) => format!("imports {full}, the host's {bare} {ours} has no interface `{interface}`"),
            None => format!("imports {full}, {}", host_has(&bare)),
        });
        return;
    };
    let host = if served == *version { "the host".to_owned() } else { format!("the host's {served}") };
    let theirs_side = Side { resolve, name: "the component" };
    let ours_side = Side { resolve: packages::resolve(), name: &host };
    interfaces(&full, &theirs_side, theirs, &ours_side, &ours_side.resolve.interfaces[ours], lines);
}

/// One of the two that are compared.
struct Side<'a> {
    resolve: &'a Resolve,
    name: &'a str,
}

fn interfaces(
    full: &str,
    left: &Side<'_>,
    theirs: &Interface,
    right: &Side<'_>,
    ours: &Interface,
    lines: &mut Vec<String>,
) {
    for (name, id) in &theirs.types {
        match ours.types.get(name) {
            Some(our_id) => types(&format!("{full}: type `{name}`"), left, *id, right, *our_id, lines),
            None => lines.push(format!("{full}: type `{name}` is not one that {} has", right.name)),
        }
    }
    for (name, found) in &theirs.functions {
        let subject = format!("{full}: function `{name}`");
        match ours.functions.get(name) {
            Some(wanted) => function(&subject, left, found, right, wanted, lines),
            None => {
                let known: Vec<&str> = ours.functions.keys().map(String::as_str).collect();
                lines.push(format!("{subject} is not one that {} has: it has {}", right.name, known.join(", ")));
            }
        }
    }
}

fn function(
    subject: &str,
    left: &Side<'_>,
    theirs: &Function,
    right: &Side<'_>,
    ours: &Function,
    lines: &mut Vec<String>,
) {
    parts(subject, "parameter", &left.parameters(theirs), right.name, &right.parameters(ours), lines);
    let (found, wanted) = (left.result(theirs), right.result(ours));
    if found != wanted {
        lines.push(format!("{subject} returns {}, {} returns {}", quoted(&found), right.name, quoted(&wanted)));
    }
}

fn quoted(result: &Option<String>) -> String {
    result.as_ref().map_or_else(|| "nothing".to_owned(), |text| format!("`{text}`"))
}

/// Compares two lists of parts by place, as the canonical ABI does.
fn parts(subject: &str, part: &str, theirs: &[String], host: &str, ours: &[String], lines: &mut Vec<String>) {
    for at in 0..theirs.len().max(ours.len()) {
        match (theirs.get(at), ours.get(at)) {
            (Some(found), Some(wanted)) if found == wanted => {}
            (Some(found), Some(wanted)) => {
                lines.push(format!("{subject} has {part} `{found}`, {host} has `{wanted}`"));
            }
            (Some(found), None) => lines.push(format!("{subject} has {part} `{found}`, {host} has none there")),
            (None, Some(wanted)) => lines.push(format!("{subject} has no {part} `{wanted}`, {host} has")),
            (None, None) => {}
        }
    }
}

fn types(subject: &str, left: &Side<'_>, theirs: TypeId, right: &Side<'_>, ours: TypeId, lines: &mut Vec<String>) {
    let (theirs, ours) = (left.origin(theirs), right.origin(ours));
    match (left.members(theirs), right.members(ours)) {
        (Some((kind, found)), Some((our_kind, wanted))) if kind == our_kind => {
            parts(subject, kind.part(), &found, right.name, &wanted, lines);
        }
        _ => {
            let (found, wanted) = (left.definition(theirs), right.definition(ours));
            if found != wanted {
                lines.push(format!("{subject} is `{found}`, {} has `{wanted}`", right.name));
            }
        }
    }
}

/// Kinds of types that are known by a name and made of parts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compound {
    Record,
    Variant,
    Enum,
    Flags,
}

impl Compound {
    fn part(self) -> &'static str {
        match self {
            Compound::Record => "field",
            Compound::Variant | Compound::Enum => "case",
            Compound::Flags => "flag",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Compound::Record => "record",
            Compound::Variant => "variant",
            Compound::Enum => "enum",
            Compound::Flags => "flags",
        }
    }
}

impl Side<'_> {
    /// What a type stands for, through any number of aliases.
    fn origin(&self, mut id: TypeId) -> TypeId {
        while let TypeDefKind::Type(Type::Id(next)) = self.resolve.types[id].kind {
            id = next;
        }
        id
    }

    fn members(&self, id: TypeId) -> Option<(Compound, Vec<String>)> {
        let with = |name: &str, ty: &Type| format!("{name}: {}", self.written(ty));
        let case = |name: &str, ty: &Option<Type>| match ty {
            Some(ty) => format!("{name}({})", self.written(ty)),
            None => name.to_owned(),
        };
        Some(match &self.resolve.types[id].kind {
            TypeDefKind::Record(record) => {
                (Compound::Record, record.fields.iter().map(|field| with(&field.name, &field.ty)).collect())
            }
            TypeDefKind::Variant(variant) => {
                (Compound::Variant, variant.cases.iter().map(|part| case(&part.name, &part.ty)).collect())
            }
            TypeDefKind::Enum(list) => (Compound::Enum, list.cases.iter().map(|part| part.name.clone()).collect()),
            TypeDefKind::Flags(flags) => (Compound::Flags, flags.flags.iter().map(|flag| flag.name.clone()).collect()),
            _ => return None,
        })
    }

    /// A named type by its kind, any other as it is written.
    fn definition(&self, id: TypeId) -> String {
        match (self.members(id), &self.resolve.types[id].kind) {
            (Some((kind, _)), _) => kind.name().to_owned(),
            (None, TypeDefKind::Resource) => "resource".to_owned(),
            (None, TypeDefKind::Type(ty)) => self.written(ty),
            _ => self.written(&Type::Id(id)),
        }
    }

    fn parameters(&self, function: &Function) -> Vec<String> {
        function.params.iter().map(|param| format!("{}: {}", param.name, self.written(&param.ty))).collect()
    }

    fn result(&self, function: &Function) -> Option<String> {
        function.result.as_ref().map(|ty| self.written(ty))
    }

    fn signature(&self, function: &Function) -> String {
        let parameters = self.parameters(function).join(", ");
        match self.result(function) {
            Some(result) => format!("func({parameters}) -> {result}"),
            None => format!("func({parameters})"),
        }
    }

    /// The type as WIT. `wasmparser` bounds how large a type can be when it is written out.
    fn written(&self, ty: &Type) -> String {
        let id = match ty {
            Type::Id(id) => self.origin(*id),
            Type::Bool => return "bool".to_owned(),
            Type::U8 => return "u8".to_owned(),
            Type::U16 => return "u16".to_owned(),
            Type::U32 => return "u32".to_owned(),
            Type::U64 => return "u64".to_owned(),
            Type::S8 => return "s8".to_owned(),
            Type::S16 => return "s16".to_owned(),
            Type::S32 => return "s32".to_owned(),
            Type::S64 => return "s64".to_owned(),
            Type::F32 => return "f32".to_owned(),
            Type::F64 => return "f64".to_owned(),
            Type::Char => return "char".to_owned(),
            Type::String => return "string".to_owned(),
            Type::ErrorContext => return "error-context".to_owned(),
        };
        let optional = |ty: &Option<Type>| ty.as_ref().map_or_else(|| "_".to_owned(), |ty| self.written(ty));
        match &self.resolve.types[id].kind {
            TypeDefKind::Record(_)
            | TypeDefKind::Resource
            | TypeDefKind::Flags(_)
            | TypeDefKind::Variant(_)
            | TypeDefKind::Enum(_)
            | TypeDefKind::Unknown => self.named(id),
            TypeDefKind::Handle(Handle::Own(resource)) => self.named(self.origin(*resource)),
            TypeDefKind::Handle(Handle::Borrow(resource)) => format!("borrow<{}>", self.named(self.origin(*resource))),
            TypeDefKind::Tuple(tuple) => {
                let types: Vec<String> = tuple.types.iter().map(|ty| self.written(ty)).collect();
                format!("tuple<{}>", types.join(", "))
            }
            TypeDefKind::Option(ty) => format!("option<{}>", self.written(ty)),
            TypeDefKind::Result(result) => match (&result.ok, &result.err) {
                (None, None) => "result".to_owned(),
                (Some(ok), None) => format!("result<{}>", self.written(ok)),
                (ok, Some(err)) => format!("result<{}, {}>", optional(ok), self.written(err)),
            },
            TypeDefKind::List(ty) => format!("list<{}>", self.written(ty)),
            TypeDefKind::Map(key, value) => format!("map<{}, {}>", self.written(key), self.written(value)),
            TypeDefKind::FixedLengthList(ty, length) => format!("list<{}, {length}>", self.written(ty)),
            TypeDefKind::Future(ty) => format!("future<{}>", optional(ty)),
            TypeDefKind::Stream(ty) => format!("stream<{}>", optional(ty)),
            TypeDefKind::Type(ty) => self.written(ty),
        }
    }

    fn named(&self, id: TypeId) -> String {
        self.resolve.types[id].name.clone().unwrap_or_else(|| "a type without a name".to_owned())
    }
}

#[cfg(test)]
#[path = "skew_tests.rs"]
pub(crate) mod tests;
