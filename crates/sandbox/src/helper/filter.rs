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
pub(super) fn install(families: &[i32]) -> Setup<()> {
    let forbidden = program(forbidden(families)?, libc::EPERM)?;
    let unknown = program(UNKNOWN.iter().map(|call| (*call, Vec::new())).collect(), libc::ENOSYS)?;
    apply_filter(&unknown).step("seccomp")?;
    #[cfg(target_arch = "x86_64")]
    apply_filter(&second_numbers()).step("seccomp")?;
    apply_filter(&forbidden).step("seccomp")
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn program(rules: Rules, error: i32) -> Setup<BpfProgram> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH).step("seccomp")?;
    let refuse = SeccompAction::Errno(error.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture).step("seccomp")?;
    filter.try_into().step("seccomp")
}

fn forbidden(families: &[i32]) -> Setup<Rules> {
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
    Ok(rules)
}

/// The x32 interface gives every call a second number, which the lists above do not hold.
#[cfg(target_arch = "x86_64")]
fn second_numbers() -> BpfProgram {
    const X32: u32 = 0x4000_0000;
    let statement = |code, value| seccompiler::sock_filter { code, jt: 0, jf: 0, k: value };
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let at_least = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    let answer = (libc::BPF_RET | libc::BPF_K) as u16;
    vec![
        // The number of the call is the first word.
        statement(load, 0),
        seccompiler::sock_filter { code: at_least, jt: 0, jf: 1, k: X32 },
        statement(answer, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned()),
        statement(answer, libc::SECCOMP_RET_ALLOW),
    ]
}
