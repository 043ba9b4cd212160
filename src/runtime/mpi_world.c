/* See the header. */
#include "runtime/mpi_world.h"

#include "base/error.h"

#include <mpi.h>
#include <stdlib.h>

bool
lh_mpi_fail(GError **error, const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;

    MPI_Error_string(code, text, &length);
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "MPI: %s: %s", what, text);
    return false;
}

static void
finalize(void)
{
    int initialized = 0, finalized = 0;

    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (initialized && !finalized)
        MPI_Finalize();
}

bool
lh_mpi_start(GError **error)
{
    int initialized = 0, provided = MPI_THREAD_SINGLE, code;

    MPI_Initialized(&initialized);
    if (initialized)
        return true;
    code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    if (code != MPI_SUCCESS)
        return lh_mpi_fail(error, "cannot start", code);
    atexit(finalize);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (provided >= MPI_THREAD_FUNNELED)
        return true;
    g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                        "MPI: this library does not allow a process to have threads");
    return false;
}
