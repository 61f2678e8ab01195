//! Which names may stand behind a dot or in a pattern. Owns that decision; knows no syntax tree.
//!
//! Invariant: a name that passes reads nothing of a browser, of JavaScript's machinery or of React that could be of use
//! to an attacker. That is so because a name passes only if it is on a list of harmless ones, or if *no* object of
//! those three has a property of that name (`platform_names.txt` is the full list, made by `web/platform-names.mjs`), so
//! that it can only be a name of the module's own data.

use super::lists::Words;

/// What a name may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// Read and called.
    Free,
    /// Read as data, not called: it is also the name of something in a browser.
    Field,
    /// Also the name of something in a browser: read with `own(object, "name")`, or as a property of a component.
    Platform,
    /// Never read by name.
    Refused,
}

pub(super) fn member(name: &str) -> Name {
    if METHODS.contains(name) {
        return Name::Free;
    }
    if FIELDS.contains(name) {
        return Name::Field;
    }
    if name.starts_with("__") || name.starts_with("$$") || INTERNAL.contains(name) || has_vendor_prefix(name)
    {
        return Name::Refused;
    }
    if PLATFORM.contains(name) { Name::Platform } else { Name::Free }
}

/// Keys that no object literal may define: they change what the language or React does with the object.
pub(super) fn is_hidden_hook(key: &str) -> bool {
    key.starts_with("$$")
        || matches!(
            key,
            "__proto__"
                | "constructor"
                | "prototype"
                | "then"
                | "toString"
                | "valueOf"
                | "toJSON"
                | "dangerouslySetInnerHTML"
        )
}

/// Keys that turn the copy of a React element into another element.
pub(super) fn is_element_part(key: &str) -> bool {
    matches!(key, "type" | "props" | "ref" | "_owner" | "_store")
}

static PLATFORM: Words = Words::new(include_str!("platform_names.txt"));

fn has_vendor_prefix(name: &str) -> bool {
    ["webkit", "moz", "ms"].iter().any(|prefix| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
    })
}

/// Internals of React (18 and 19) and of other browsers than the one the platform list was read from.
static INTERNAL: Words = Words::new(
    "
    _owner _store _self _source _debugOwner _debugSource _debugInfo _debugStack _debugTask _currentValue
    _currentValue2 _currentRenderer _payload _init _valueTracker _reactInternals _reactInternalFiber
    _reactInternalInstance _reactRootContainer _reactEvents _reactListening _reactName _targetInst
    _dispatchListeners _dispatchInstances stateNode memoizedProps memoizedState pendingProps containerInfo
    updateQueue alternate sibling child return props ref refs current stack prepareStackTrace
    captureStackTrace callee caller arguments call apply bind toSource uneval lineNumber columnNumber
    fileName sourceURL originalTarget explicitOriginalTarget rangeParent srcElement composedPath
    nativeEvent controllers sidebar fullScreen scrollMaxX raw constructor prototype hasOwnProperty
    isPrototypeOf propertyIsEnumerable valueOf toJSON ownerDocument defaultView view target currentTarget
    relatedTarget window document globalThis
    ",
);

/// Methods and properties of arrays, texts, numbers, dates, maps, sets, promises, patterns and formats.
static METHODS: Words = Words::new(
    "
    length at concat entries every fill filter find findIndex findLast findLastIndex flat flatMap forEach
    includes indexOf join keys lastIndexOf map pop push reduce reduceRight reverse shift slice some sort
    splice toReversed toSorted toSpliced unshift values with charAt charCodeAt codePointAt endsWith
    localeCompare match matchAll normalize padEnd padStart repeat replace replaceAll search split
    startsWith substring toLocaleLowerCase toLocaleUpperCase toLowerCase toUpperCase trim trimEnd
    trimStart toFixed toLocaleString toPrecision toExponential toString getDate getDay getFullYear
    getHours getMilliseconds getMinutes getMonth getSeconds getTime getTimezoneOffset getUTCDate getUTCDay
    getUTCFullYear getUTCHours getUTCMinutes getUTCMonth getUTCSeconds setDate setFullYear setHours
    setMilliseconds setMinutes setMonth setSeconds setTime setUTCDate setUTCHours toDateString toISOString
    toLocaleDateString toLocaleTimeString toTimeString toUTCString get set has delete clear add size union
    intersection difference then catch finally test exec lastIndex groups index format formatToParts
    formatRange select resolvedOptions of compare abort signal aborted message name cause type text item
    request dispatch getValue setValue Provider refresh update create show hide toggle validate load
    cancel save next retry isValid
    ",
);

/// Words that data often has and that some object of a browser has too, where they read a text, a number, a truth
/// value or nothing of use. Not called.
static FIELDS: Words = Words::new(
    "
    accept accuracy action actions active added address after album align altitude annotation architecture
    areas availability available background badge before beta body bytes callback callbacks candidate
    caption channel charging checked children city className clientId code collections color command
    commit complete completed component conditions confidence config configuration content contentType
    context controller count country credential data dateTime day days default defaultValue delay deleted
    deletions dependencies deps description destination detail details device deviceId direction disabled
    display divisor domain duration effect elapsedTime empty enabled encoding end endTime endpoint
    endpoints entry error errorCode events expirationTime expires external features fields filename files
    filters finished first flags font force frequency from fullName group hash head headers heading height
    hidden high host hostname href icon image images info input inputs interval items json key kind label
    labels lane lang language languages last latitude layer left level limits line lines link links list
    locale lock log login longitude low manufacturer max maxLength maxValue media memory messages metadata
    method min minLength minValue minutes mode month multiple next node number numeric offset opened
    operator options organization orientation outputs parameters password pattern paused payload pending
    permission permissions phone placeholder platform points policy port ports position postalCode
    precision prefix priority product properties protocol provider quality query queue radius range rate
    reason reasons recipient region removed requestId required response result results right role round
    rowIndex rows rules sample scale scheme scope seconds seed segments selected sender service session
    sessionId shape shared sign signature slot source sources species speed start startTime state stats
    status statusText step store stores stream style subject suffix summary system tag tags threshold time
    timeStamp timeout timestamp title token total track tracks transaction transfer turn types unit url
    usage used username uuid valid value variant vendor version visible voice volume waiting weight width
    year years
    ",
);
