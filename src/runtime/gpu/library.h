/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries loaded at run time, so that the program also starts without them and can report that:
 * tables of their functions, and errors for missing or unsupported libraries.
 */
#pragma once

#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *name;
    size_t offset; /* of its pointer in the struct of the library's functions */
} LhLibraryFunction;

/* The row of a function: ncclSend is the member Send of LhNccl. */
#define LH_LIBRARY_FUNCTION(prefix, type, member)                                                  \
    {                                                                                              \
#prefix #member, offsetof(type, member)                                                    \
    }

typedef struct {
    int major, minor, patch;
} LhLibraryVersion;

typedef struct {
    const char *name;                   /* "NCCL" */
    const char *file;                   /* default file */
    const char *variable;               /* environment variable that may name another file */
    const LhLibraryFunction *functions; /* terminated by one without a name */
    LhLibraryVersion least; /* oldest supported version; newer ones must have the same major */
    int major; /* major version of the headers, whose types and enumerators the functions are called
                  with */
    /* Reads the version from the library in @functions; false with the library's error in @why. */
    bool (*version)(void *functions, LhLibraryVersion *version, const char **why);
} LhLibrary;

/* Load state, one per process. */
typedef struct {
    pthread_mutex_t lock;
    bool is_loaded;
} LhLibraryState;
#define LH_LIBRARY_STATE                                                                           \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                          \
    }

/*
 * Loads the library, once per process, and sets the pointers of @functions, its struct.
 * LH_ERROR_RUNTIME with its name if it is missing, lacks a function, or has an unsupported version;
 * @functions is invalid then. May be called from any thread.
 */
bool lh_library_load(const LhLibrary *library, LhLibraryState *state, void *functions,
                     GError **error);

/* "2.28.9"; caller frees. */
char *lh_library_version_text(LhLibraryVersion version);

/* The file that contains a function; caller frees. */
char *lh_library_path(const void *function);
