/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI, initialised once per process and finalised at its end; used by control plane and transport.
 * All MPI calls are made by the thread that runs the program (MPI_THREAD_FUNNELED).
 *
 * Where MPI has a non-blocking call, the caller polls it until its deadline, and then fails with an
 * error that names the missing ranks. A guard thread watches the calls themselves, of which
 * MPI_Init_thread, MPI_Recv and MPI_Finalize block: a call that has not returned by the deadline
 * ends this process, whereupon mpirun ends the others.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Delay between ranks that end, so that one process ends first: mpirun of Open MPI 4.1 can crash
 * when several end at once. */
#define LH_MPI_STAGGER_US 250000
#define LH_MPI_STAGGERED_RANKS 20

/* Initialises MPI if needed, and sets the deadline; false with @error (LH_ERROR_RUNTIME). */
bool lh_mpi_start(int64_t deadline_us, GError **error);

/*
 * Sets what the guard does when a call of MPI does not return: @end reports @text and ends the
 * process with lh_mpi_exit(). Call before lh_mpi_start(). The thread that made the call stays
 * blocked.
 */
void lh_mpi_on_end(void (*end)(const char *text));
/* Ends this process after a delay in which the others can report what they see; the launcher ends
 * them. */
G_GNUC_NORETURN void lh_mpi_exit(int status);

/* Brackets MPI calls; @phase says what they are for, worded to follow "in", and is borrowed until
 * lh_mpi_leave(). */
void lh_mpi_enter(const char *phase);
void lh_mpi_leave(void);

/* Ends all processes with @status (not 0), and this one even if MPI_Abort does not return. */
void lh_mpi_abort(int status);

/* True if @code is MPI_SUCCESS; else the error "MPI: @what: ...". */
bool lh_mpi_ok(int code, const char *what, GError **error);
