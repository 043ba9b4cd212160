/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library preloaded into the processes of mpirun. It stops one of them (SIGSTOP) at a call of
 * MPI, as if its node hung, or before it sends control data over TCP. It uses MPI's profiling
 * interface and replaces send(2), without any support in the program.
 *
 *     STOP_RANK=1 STOP_AT=transfer:2 STOP_PID=file
 *
 * Rank 1 stops before its second send of a program's message. Its process id goes to a file, which
 * is created atomically so that others may wait for it. Other places: init, start (where the first
 * process sends its address to the others), control (data of the control plane,
 * runtime/process/frames.h), finalize.
 *
 *     STOP_AT=abort
 *
 * MPI_Abort does not return on any rank and ends no process.
 */
#include "runtime/process/frames.h"

#include <limits.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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

/* Stops the process if @place is the requested place and count. */
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

int /* NOLINTNEXTLINE(readability-function-size): the parameters are MPI's */
MPI_Recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
         MPI_Status *status)
{
    static int times;

    come_to("start", &times);
    return PMPI_Recv(data, count, type, from, tag, comm, status);
}

int /* NOLINTNEXTLINE(readability-function-size): the parameters are MPI's */
MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
          MPI_Request *request)
{
    static int starts, transfers;
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *ranks = getenv("OMPI_COMM_WORLD_SIZE");
    const int others = ranks == NULL ? 0 : (int)strtol(ranks, NULL, 10) - 1;

    /* The first process sends its address to each other one. */
    if (rank != NULL && strcmp(rank, "0") == 0 && starts < others)
        come_to("start", &starts);
    else
        come_to("transfer", &transfers);
    return PMPI_Isend(data, count, type, to, tag, comm, request);
}

/* Number of data frames in @bytes, which begin with a frame. */
static int
count_data(const unsigned char *bytes, size_t count)
{
    size_t at = 0;
    int data = 0;

    while (at + LH_FRAME_HEADER_BYTES <= count && memcmp(bytes + at, "lhF1", 4) == 0) {
        const unsigned char *length = bytes + at + 8;

        data += bytes[at + 4] == LH_FRAME_DATA;
        at += LH_FRAME_HEADER_BYTES +
              ((size_t)length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16);
    }
    return data;
}

ssize_t
send(int socket, const void *data, size_t bytes, int flags)
{
    static int times;

    for (int i = count_data(data, bytes); i > 0; i--)
        come_to("control", &times);
    return sendto(socket, data, bytes, flags, NULL, 0);
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
