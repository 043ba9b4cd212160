/*
 * The fastest points of a space, without simulating them all. What a point takes at least is known
 * before (estimate.h); points are simulated in the order of that, in rounds of a fixed number, and
 * what takes longer at least than the last of those that are wanted takes in fact is never
 * simulated. So the answer is that of simulating every point, and neither it nor the rounds depend
 * on the number of threads, nor on that of processes.
 */
#pragma once

#include "compare/error_bar.h"
#include "planner/estimate.h"
#include "runtime/process/processes.h"

/* How many points are looked at in a round. */
#define LH_PLAN_ROUND 16
#define LH_PLAN_SIMULATED                                                                          \
    4 /* once there are as many as are wanted: each round lowers the cut of the next */

typedef enum {
    LH_POINT_OPEN,    /* nothing is decided: only in a search that was interrupted */
    LH_POINT_RAN,     /* simulated */
    LH_POINT_CUT,     /* takes longer than those that are wanted: by its bound, or by as much as was
                         simulated of it */
    LH_POINT_UNFIT,   /* needs more memory than there is */
    LH_POINT_REFUSED, /* there is no such step */
    LH_POINT_FAILED,  /* its simulation could not end: a failed link on a route */
    LH_POINT_STATES
} LhPointState;

/* "open", "simulated", ...; NULL-terminated. */
extern const char *const lh_point_state_names[];

/* What is known of a point. */
typedef struct {
    int state;              /* LhPointState */
    bool close;             /* the estimate is the close one: `peak_bytes` is exact */
    LhTime time_ps;         /* of a step: what it takes, or, where it was not simulated, at least */
    uint64_t peak_bytes;    /* of the rank that needs most, or at least so much */
    LhTimeError time_error; /* of those that ran */
    LhErrorParts parts;     /* likewise */
    char *reason;           /* owned: of those refused and failed */
} LhPlanOutcome;

/* How far a search is. */
typedef struct {
    const LhPlanSpace *space;
    guint counts[LH_POINT_STATES];
    guint estimated; /* points of which something is known */
    guint best;      /* the fastest point so far; G_MAXUINT: none */
    LhTime best_ps;
} LhPlanProgress;

/* What searches remember and tell; lines of a file are one use of it. */
typedef struct {
    /* Sets @outcome to what was found of the point before; false: nothing was. Only of estimates
     * that are close, and of what they came to. */
    bool (*recall)(void *data, const LhPlanSpace *space, guint index, LhPlanOutcome *outcome);
    /* Something was found, in an order that does not depend on threads. */
    void (*remember)(void *data, const LhPlanSpace *space, guint index,
                     const LhPlanOutcome *outcome);
    void *data;
} LhPlanMemory;

typedef struct {
    guint top;                    /* how many of the fastest are wanted, at least 1 */
    bool front;                   /* also all that no other one beats in both time and memory */
    guint jobs;                   /* threads; 0: as the cores and the memory allow */
    const LhPlanMemory *memory;   /* NULL: none; of several processes only the first may have one */
    const LhProcesses *processes; /* that search together, each of them here; NULL: this one */
    /* Called from any thread, one at a time; false ends the search. NULL: none. */
    bool (*progress)(void *data, const LhPlanProgress *progress);
    void *progress_data;
} LhPlanSearchOptions;

typedef struct {
    const LhPlanSpace *space; /* borrowed */
    LhPlanOutcome *outcomes;  /* by point */
    guint counts[LH_POINT_STATES];
    uint64_t limit_bytes; /* what a rank may hold; 0: no limit, or no point got that far */
    GArray *ran;          /* of guint: points that ran, the fastest first */
    GArray *misses;       /* of guint: those unfit that need least, with their exact peaks */
    bool interrupted;
    GError *failure; /* of processes that search together: LH_ERROR_RUNTIME. Nothing else is to be
                        read then */
} LhPlanSearch;

LhPlanSearch *lh_plan_search(const LhPlanSpace *space, const LhPlanSearchOptions *options);
void lh_plan_search_free(LhPlanSearch *search);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhPlanSearch, lh_plan_search_free)

/* Threads for simulations of the space. */
guint lh_plan_threads(guint jobs, const LhPlanSpace *space);

/* Whether no point that ran is at least as good as @index, which ran, in time and memory and better
 * in one of them. */
bool lh_plan_on_front(const LhPlanSearch *search, guint index);
