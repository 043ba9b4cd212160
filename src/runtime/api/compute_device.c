/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/compute_device.h"

#define LOOKS_MAX 500   /* polls of a mark without a pause */
#define MARK_LOOK_US 20 /* between two polls after that */

bool
lh_device_pass(const LhRunDevice *device, LhDeviceState *state, LhDeviceMark mark,
               bool (*stopping)(void *data), void *data, GError **error)
{
    int passed = device->passed(state, mark, error);

    for (unsigned looks = 0; passed == 0 && (stopping == NULL || !stopping(data)); looks++) {
        if (looks > LOOKS_MAX)
            g_usleep(MARK_LOOK_US);
        passed = device->passed(state, mark, error);
    }
    return passed == 1;
}

bool
lh_device_finish(const LhRunDevice *device, LhDeviceState *state, LhDeviceStream stream,
                 bool (*stopping)(void *data), void *data, GError **error)
{
    LhDeviceMark mark = device->mark(state, stream, error);
    bool passed;

    if (mark == NULL)
        return false;
    passed = lh_device_pass(device, state, mark, stopping, data, error);
    device->unmark(state, mark);
    return passed;
}
