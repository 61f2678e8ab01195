//! The system call filter: calls that no build, test or server needs and that have been ways out before.
//! Invariant: a call is refused under every number it has; other architectures' calls end the process.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

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
const UNKNOWN: &[libc::c_long] =
    &[libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

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
    let mut whole = unknown();
    whole.extend(forbidden(families)?);
    apply_filter(&whole).step("seccomp")
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
    rules.insert(libc::SYS_socket, if others.is_empty() { Vec::new() } else { vec![rule(others)?] });
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

/// The beginning of a filter: refuses unknown calls, and goes on behind its last statement for all others.
fn unknown() -> BpfProgram {
    let statement = |code: u32, k, jf| seccompiler::sock_filter { code: code as u16, jt: 0, jf, k };
    // The number of the call is the first word.
    let load = statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0);
    let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    let refuse = statement(libc::BPF_RET | libc::BPF_K, refuse, 0);
    let mut program = vec![load];
    let is_listed = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    program.extend(UNKNOWN.iter().flat_map(|call| [statement(is_listed, *call as u32, 1), refuse.clone()]));
    // The x32 interface gives every call a second number, which the lists above do not hold.
    #[cfg(target_arch = "x86_64")]
    program.extend([statement(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0x4000_0000, 1), refuse]);
    program
}
