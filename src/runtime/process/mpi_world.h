/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI, started once in a process and ended with it. Control plane and transport both stand on it.
 * All calls of MPI are made by the thread that runs the program (MPI_THREAD_FUNNELED).
 *
 * Where MPI has a call that does not block, the caller asks again and again until its deadline, and
 * then fails with an error that says whom it waited for. A thread guards the calls themselves, of
 * which MPI_Init_thread, MPI_Recv and MPI_Finalize block by nature: one that has not returned by
 * the deadline ends this process, whereupon mpirun ends the others.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* From one rank to the next, so that one process ends first: mpirun of Open MPI 4.1 can crash when
 * several do at once. */
#define LH_MPI_STAGGER_US 250000
#define LH_MPI_STAGGERED_RANKS 20

/* Starts MPI if it has not been, and sets the deadline; false with @error (LH_ERROR_RUNTIME). */
bool lh_mpi_start(int64_t deadline_us, GError **error);

/*
 * What the guard does with a process whose call of MPI has not returned: @end says why, @text, and
 * ends it with lh_mpi_exit(). To be set before MPI is started. The thread that made the call does
 * nothing any more.
 */
void lh_mpi_on_end(void (*end)(const char *text));
/* Ends this process after the others had the time to say what they see: the launcher ends them. */
G_GNUC_NORETURN void lh_mpi_exit(int status);

/* Around calls of MPI: what they are for, in words that follow "in": borrowed for as long. */
void lh_mpi_enter(const char *phase);
void lh_mpi_leave(void);

/* Ends all processes with @status, which is not 0, and this one also where MPI_Abort does not
 * return. */
void lh_mpi_abort(int status);

/* True if @code is MPI_SUCCESS; else the error "MPI: @what: ...". */
bool lh_mpi_ok(int code, const char *what, GError **error);
