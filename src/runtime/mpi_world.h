/*
 * MPI, started once in a process and ended with it. Control plane and transport both stand on it.
 * All calls of MPI are made by the thread that runs the program (MPI_THREAD_FUNNELED).
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Starts MPI if it has not been; false with @error (LH_ERROR_RUNTIME). */
bool lh_mpi_start(GError **error);

/* The error of a call that returned @code: "MPI: @what: ...". Returns false. */
bool lh_mpi_fail(GError **error, const char *what, int code);
