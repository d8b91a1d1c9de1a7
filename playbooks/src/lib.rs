//! playbooks
