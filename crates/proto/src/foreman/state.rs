//! The states of both ends, named as in the documents.

/// The states of a foreman towards a worker, by the names of the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForemanState {
    /// SV_INIT0: has not said OK yet.
    Init0,
    /// SV_INIT1: waits for HELLO.
    Init1,
    /// SV_INIT2: HELLO came, the owner has not answered.
    Init2,
    /// SV_LOOP0: the worker has room, and an offer would go out at once.
    Loop0,
    /// SV_LOOP1: waits for events.
    Loop1,
    /// SV_LOOP2: UPDATE came, the owner has not answered.
    Loop2,
    /// SV_EXIT: the connection is over.
    Exit,
}

/// The states of a worker, by the names of the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerEndState {
    /// CL_INIT0: waits for the foreman's first OK. Without a connection, too.
    Init0,
    /// CL_INIT1: said HELLO, waits for OK.
    Init1,
    /// CL_LOOP0: waits for requests of the foreman and for ends of tasks.
    Loop0,
    /// CL_UPDATE0: a task has ended, and it is not yet time to say so.
    Update0,
    /// CL_UPDATE1: said UPDATE, waits for OK.
    Update1,
    /// CL_EXIT0: left in order.
    Exit0,
    /// CL_EXIT1: was told to leave at once.
    Exit1,
}
