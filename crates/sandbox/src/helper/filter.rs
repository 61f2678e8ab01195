//! The system call filter: calls that no build, test or server needs and that have been ways out before.
//! Invariant: a call is refused under every number it has; other architectures' calls end the process.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

use std::os::fd::{FromRawFd, OwnedFd};

use super::connections::FCHMODAT2;
use super::{Setup, Step};

/// Refused with “operation not permitted”.
const FORBIDDEN: &[libc::c_long] = &[
    // other processes
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    // mounts and namespaces
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    // keys of the kernel
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // the kernel itself
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_fanotify_init,
];

/// Refused as unknown, so that programs fall back to older calls whose arguments can be looked at.
const UNKNOWN: &[libc::c_long] = &[
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Stopped until the first process of the sandbox has answered.
const ANSWERED: &[libc::c_long] = &[libc::SYS_connect, libc::SYS_bind];

/// Calls that change the mode of a file, and which argument the mode is.
const CHANGES_MODE: &[(libc::c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
];

/// Calls that make a file, with the arguments of the flags, if there are any, and of the mode.
const MAKES_FILE: &[(libc::c_long, Option<u8>, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, Some(1), 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, None, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, None, 1),
    (libc::SYS_openat, Some(2), 3),
    (libc::SYS_mknodat, None, 2),
];

const SETUID: u64 = 0o4000;
const SETGID: u64 = 0o2000;
/// Without the flag for folders, which is part of the name's value.
const TEMPORARY_FILE: u64 = 0o20_000_000;

/// The kernel's name for this architecture.
const ARCHITECTURE: u32 = if cfg!(target_arch = "x86_64") {
    0xC000_003E
} else if cfg!(target_arch = "aarch64") {
    0xC000_00B7
} else {
    0xC000_00F3
};

/// Every flag of `clone` that makes a namespace.
const NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;

/// Refuses the listed calls from now on, and sockets of other families than these.
///
/// One filter, because the kernel compiles each one and asks each one about every call.
pub(super) fn install(families: &[i32]) -> Setup<()> {
    let mut whole = beginning(false);
    whole.extend(forbidden(families)?);
    apply_filter(&whole).step("seccomp")
}

/// As `install`; the calls that are answered one by one arrive at the descriptor. `None`: the kernel gives none, and
/// nothing was installed.
pub(super) fn install_answered(families: &[i32]) -> Setup<Option<OwnedFd>> {
    let mut whole = beginning(true);
    whole.extend(forbidden(families)?);
    let length = u16::try_from(whole.len()).step("seccomp")?;
    let program = libc::sock_fprog { len: length, filter: whole.as_mut_ptr().cast() };
    // The second flag, where the kernel knows it, keeps signals from repeating a call that was answered already.
    let listens = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    for flags in [listens | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, listens] {
        // SAFETY: the program is as long as said and lives until the call returns; its statements have the layout of the
        // kernel's.
        let number = unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
        };
        if let Ok(number @ 0..) = i32::try_from(number) {
            // SAFETY: the kernel made this descriptor just now for this process.
            return Ok(Some(unsafe { OwnedFd::from_raw_fd(number) }));
        }
    }
    Ok(None)
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn forbidden(families: &[i32]) -> Setup<BpfProgram> {
    let mut rules: Rules = FORBIDDEN.iter().map(|call| (*call, Vec::new())).collect();
    let word = |index, operator, value| {
        SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value).step("seccomp")
    };
    let rule = |conditions| SeccompRule::new(conditions).step("seccomp");
    let mut others = Vec::new();
    for family in families {
        others.push(word(0, SeccompCmpOp::Ne, u64::from(family.cast_unsigned()))?);
    }
    // No condition at all: every socket is refused. Pairs of sockets are another call.
    let mut sockets = if others.is_empty() { Vec::new() } else { vec![rule(others)?] };
    // A datagram names its receiver in memory, where a filter cannot look. The kernel takes “raw” for the same.
    let mut pairs = Vec::new();
    for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
        let local = || {
            let kind = word(1, SeccompCmpOp::MaskedEq(0xf), u64::from(kind.cast_unsigned()))?;
            rule(vec![word(0, SeccompCmpOp::Eq, u64::from(libc::AF_UNIX.cast_unsigned()))?, kind])
        };
        pairs.push(local()?);
        if families.contains(&libc::AF_UNIX) {
            sockets.push(local()?);
        }
    }
    rules.insert(libc::SYS_socket, sockets);
    rules.insert(libc::SYS_socketpair, pairs);
    rules.extend(makes_setuid()?);
    // A filter cannot say “any of these bits”, so each bit has its rule.
    let mut clone = Vec::new();
    for bit in (0..u64::BITS).map(|bit| 1_u64 << bit).filter(|bit| NAMESPACES & bit != 0) {
        clone.push(rule(vec![word(0, SeccompCmpOp::MaskedEq(bit), bit)?])?);
    }
    rules.insert(libc::SYS_clone, clone);
    // Typing into the terminal that the program was started from.
    let mut ioctl = Vec::new();
    for request in [libc::TIOCSTI, libc::TIOCLINUX] {
        #[allow(clippy::unnecessary_cast, reason = "the type of a request differs between C libraries")]
        ioctl.push(rule(vec![word(1, SeccompCmpOp::Eq, request as u64)?])?);
    }
    rules.insert(libc::SYS_ioctl, ioctl);
    let architecture = TargetArch::try_from(std::env::consts::ARCH).step("seccomp")?;
    let refuse = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture).step("seccomp")?;
    filter.try_into().step("seccomp")
}

/// Files that would lend the user's rights to everybody who starts them: outside, where no mount flag stops it.
fn makes_setuid() -> Setup<Rules> {
    let mut rules = Rules::new();
    let has = |index, bits| {
        SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits), bits)
            .step("seccomp")
    };
    let rule = |conditions| SeccompRule::new(conditions).step("seccomp");
    for (call, mode) in CHANGES_MODE {
        rules.insert(*call, vec![rule(vec![has(*mode, SETUID)?])?]);
    }
    for (call, flags, mode) in MAKES_FILE {
        let mut refused = Vec::new();
        for bit in [SETUID, SETGID] {
            let Some(flags) = flags else {
                refused.push(rule(vec![has(*mode, bit)?])?);
                continue;
            };
            // Without these flags the argument means nothing and may hold anything.
            for makes in [u64::from(libc::O_CREAT.cast_unsigned()), TEMPORARY_FILE] {
                refused.push(rule(vec![has(*flags, makes)?, has(*mode, bit)?])?);
            }
        }
        rules.insert(*call, refused);
    }
    Ok(rules)
}

/// The beginning of a filter: ends calls of other architectures, refuses unknown calls, stops those that are answered one
/// by one, and goes on behind its last statement for all others.
fn beginning(answered: bool) -> BpfProgram {
    let statement = |code: u32, k, jf| seccompiler::sock_filter { code: code as u16, jt: 0, jf, k };
    let load = |offset| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0);
    let give = |action| statement(libc::BPF_RET | libc::BPF_K, action, 0);
    let equals = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    // The number of the call is the first word, the architecture the second.
    let foreign = seccompiler::sock_filter { jt: 1, jf: 0, ..statement(equals, ARCHITECTURE, 0) };
    let mut program = vec![load(4), foreign, give(libc::SECCOMP_RET_KILL_PROCESS), load(0)];
    let refuse = give(libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned());
    program.extend(UNKNOWN.iter().flat_map(|call| [statement(equals, *call as u32, 1), refuse.clone()]));
    // The x32 interface gives every call a second number, which the lists above do not hold.
    #[cfg(target_arch = "x86_64")]
    program.extend([statement(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0x4000_0000, 1), refuse]);
    let ask = give(if answered {
        libc::SECCOMP_RET_USER_NOTIF
    } else {
        libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned()
    });
    if answered {
        program.extend(ANSWERED.iter().flat_map(|call| [statement(equals, *call as u32, 1), ask.clone()]));
    }
    for (call, mode) in CHANGES_MODE {
        // The lower word of an argument comes first on every architecture that is known here.
        let argument = load(16 + 8 * u32::from(*mode));
        let has_bit = statement(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, SETGID as u32, 1);
        program.extend([statement(equals, *call as u32, 4), argument, has_bit, ask.clone(), load(0)]);
    }
    program
}
