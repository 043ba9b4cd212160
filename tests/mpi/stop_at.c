/*
 * Preloaded into the processes of mpirun, this stops one of them (SIGSTOP) when it comes to a call
 * of MPI, as a node does that hangs. By the profiling interface of MPI, so that the program knows
 * nothing of it.
 *
 *     STOP_RANK=1 STOP_AT=transfer:2 STOP_PID=file
 *
 * Rank 1 stops before its second send of a program's message, and leaves its process id in a file,
 * which is there all at once: others may wait for it.
 * Other places: init, dup, control (a send of the control plane), finalize.
 *
 *     STOP_AT=abort
 *
 * MPI_Abort does not return, on any rank, and ends nothing.
 */
#include <limits.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void
stop(void)
{
    const char *name = getenv("STOP_PID");
    char draft[PATH_MAX];
    FILE *file;

    snprintf(draft, sizeof(draft), "%s.new", name);
    file = fopen(draft, "w");
    if (file != NULL) {
        fprintf(file, "%d\n", (int)getpid());
        fclose(file);
        rename(draft, name);
    }
    raise(SIGSTOP);
}

/* Stops if this is the time of @place that was asked for. */
static void
come_to(const char *place, int *times)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *wanted = getenv("STOP_RANK");
    const char *at = getenv("STOP_AT");
    const size_t length = strlen(place);

    ++*times;
    if (rank == NULL || wanted == NULL || at == NULL || strcmp(rank, wanted) != 0 ||
        strncmp(at, place, length) != 0)
        return;
    if (*times == (at[length] == ':' ? (int)strtol(at + length + 1, NULL, 10) : 1))
        stop();
}

int
MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    static int times;

    come_to("init", &times);
    return PMPI_Init_thread(argc, argv, required, provided);
}

int
MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy)
{
    static int times;

    come_to("dup", &times);
    return PMPI_Comm_dup(comm, copy);
}

int /* NOLINTNEXTLINE(readability-function-size): the parameters are MPI's */
MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
          MPI_Request *request)
{
    static int transfers, controls;

    if (comm == MPI_COMM_WORLD)
        come_to("transfer", &transfers);
    else
        come_to("control", &controls);
    return PMPI_Isend(data, count, type, to, tag, comm, request);
}

int
MPI_Abort(MPI_Comm comm, int status)
{
    const char *at = getenv("STOP_AT");

    while (at != NULL && strcmp(at, "abort") == 0)
        pause();
    return PMPI_Abort(comm, status);
}

int
MPI_Finalize(void)
{
    static int times;

    come_to("finalize", &times);
    return PMPI_Finalize();
}
